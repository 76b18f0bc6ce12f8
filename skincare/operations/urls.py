"""The operator's pages, below the admin."""

from django.urls import path

from skincare.operations import (
    dead_letter_views,
    event_views,
    goods_views,
    held_views,
    overview,
    refund_views,
)

app_name = "operations"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("dead-letters/", dead_letter_views.browse, name="dead_letters"),
    path("dead-letters/act/", dead_letter_views.act, name="dead_letters_act"),
    path("dead-letters/<str:message_id>/", dead_letter_views.detail, name="dead_letter"),
    path("events/<str:event_id>/", event_views.event, name="event"),
    path("events/<str:event_id>/put-back/", event_views.replay, name="replay"),
    path("events/<str:event_id>/skip/", event_views.skip, name="skip"),
    path("held/", held_views.waiting, name="held"),
    path("held/payments/<uuid:payment_id>/", held_views.payment, name="held_payment"),
    path("held/notifications/<int:notification_id>/", held_views.unmatched, name="unmatched"),
    path("held/orders/<uuid:order_id>/", held_views.order, name="held_order"),
    path("payments/<uuid:payment_id>/refund/", refund_views.refund, name="refund"),
    path("orders/<uuid:order_id>/shipping/", goods_views.ship, name="ship"),
    path("goods/", goods_views.receive, name="receive_goods"),
]
