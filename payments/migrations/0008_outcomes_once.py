from django.db import migrations

#: As 0004_retention made it, but for the first branch: an unreadable notification gets its outcome
#: once too, and the document that it was read from goes with it.
FUNCTION = """
CREATE OR REPLACE FUNCTION payments_paymentnotification_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.outcome IN ({open}) AND NEW.outcome NOT IN ({open})
        AND (to_jsonb(NEW) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'{document}])
          = (to_jsonb(OLD) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'{document}])
    THEN
        RETURN NEW;
    END IF;
    -- payments.retention says so for its own transaction; what waits for a person, or what a
    -- person decided about, stays for ever, and so does what is younger than a quarter.
    IF TG_OP = 'DELETE' AND current_setting('payments.retention', true) = 'on'
        AND OLD.outcome NOT IN ({open}, 'held')
        AND OLD.received_at < now() - interval '90 days'
    THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'payments_paymentnotification is append-only: % refused', TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0007_backfill")]

    operations = [
        migrations.RunSQL(
            sql=FUNCTION.format(open="'unmatched', 'unreadable'", document=", 'document'"),
            reverse_sql=FUNCTION.format(open="'unmatched'", document=""),
        )
    ]
