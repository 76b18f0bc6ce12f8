"""The operator's pages, below the admin."""

from django.urls import path

from skincare.operations import dead_letter_pages, event_pages, held_pages, overview

app_name = "operations"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("dead-letters/", dead_letter_pages.browse, name="dead_letters"),
    path("dead-letters/act/", dead_letter_pages.act, name="dead_letters_act"),
    path("dead-letters/<str:message_id>/", dead_letter_pages.letter, name="dead_letter"),
    path("events/<str:event_id>/", event_pages.event, name="event"),
    path("events/<str:event_id>/put-back/", event_pages.put_back, name="put_back"),
    path("events/<str:event_id>/skip/", event_pages.skip, name="skip"),
    path("held/", held_pages.waiting, name="held"),
    path("held/payments/<uuid:payment_id>/", held_pages.payment, name="held_payment"),
    path("held/notifications/<int:notification_id>/", held_pages.unmatched, name="unmatched"),
    path("held/orders/<uuid:order_id>/", held_pages.order, name="held_order"),
]
