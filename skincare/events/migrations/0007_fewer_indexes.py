from django.db import migrations


class Migration(migrations.Migration):
    """Django's own indexes for searches by the beginning of an id, which nobody makes.

    Each event pays for both, at a random place of a large tree.
    """

    atomic = False  # the tables are in use meanwhile
    dependencies = [("events", "0006_large_lists")]

    operations = [
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS events_outboxevent_event_id_c3dd84f5_like",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS events_outboxevent_event_id_c3dd84f5_like"
            " ON events_outboxevent (event_id varchar_pattern_ops)",
        ),
        migrations.RunSQL(
            "DROP INDEX CONCURRENTLY IF EXISTS events_processedevent_event_id_7fa0f184_like",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS events_processedevent_event_id_7fa0f184_like"
            " ON events_processedevent (event_id varchar_pattern_ops)",
        ),
    ]
