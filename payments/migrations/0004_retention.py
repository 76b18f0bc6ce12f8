from django.db import migrations

#: Without its last branch, this is the function that 0002_append_only made.
FUNCTION = """
CREATE OR REPLACE FUNCTION payments_paymentnotification_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    -- An unmatched notification gets its outcome once; what was told stays as it is.
    IF TG_OP = 'UPDATE' AND OLD.outcome = 'unmatched' AND NEW.outcome <> 'unmatched'
        AND (to_jsonb(NEW) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'])
          = (to_jsonb(OLD) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'])
    THEN
        RETURN NEW;
    END IF;
    {retention}
    RAISE EXCEPTION 'payments_paymentnotification is append-only: % refused', TG_OP
        USING ERRCODE = 'integrity_constraint_violation';
END
$$;
"""

RETENTION = """
    -- payments.retention says so for its own transaction; what waits for a person, or what a
    -- person decided about, stays for ever, and so does what is younger than a quarter.
    IF TG_OP = 'DELETE' AND current_setting('payments.retention', true) = 'on'
        AND OLD.outcome NOT IN ('unmatched', 'held')
        AND OLD.received_at < now() - interval '90 days'
    THEN
        RETURN OLD;
    END IF;
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0003_decided_by_hand")]

    operations = [
        migrations.RunSQL(
            sql=FUNCTION.format(retention=RETENTION), reverse_sql=FUNCTION.format(retention="")
        )
    ]
