from django.db import migrations


def refuse_changes(table: str) -> migrations.RunSQL:
    """Make PostgreSQL refuse UPDATE and DELETE on `table`."""
    return migrations.RunSQL(
        sql=f"""
        CREATE FUNCTION {table}_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '{table} is append-only: % refused', TG_OP
                USING ERRCODE = 'integrity_constraint_violation';
        END
        $$;
        CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION {table}_refuse_change();
        """,
        reverse_sql=f"""
        DROP TRIGGER {table}_append_only ON {table};
        DROP FUNCTION {table}_refuse_change();
        """,
    )


ONE_OUTCOME = migrations.RunSQL(
    sql="""
    CREATE FUNCTION payments_paymentnotification_refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS $$
    BEGIN
        -- An unmatched notification gets its outcome once; what was told stays as it is.
        IF TG_OP = 'UPDATE' AND OLD.outcome = 'unmatched' AND NEW.outcome <> 'unmatched'
            AND (to_jsonb(NEW) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'])
              = (to_jsonb(OLD) - ARRAY['outcome', 'reason', 'payment_id', 'decided_at'])
        THEN
            RETURN NEW;
        END IF;
        RAISE EXCEPTION 'payments_paymentnotification is append-only: % refused', TG_OP
            USING ERRCODE = 'integrity_constraint_violation';
    END
    $$;
    CREATE TRIGGER payments_paymentnotification_append_only
        BEFORE UPDATE OR DELETE ON payments_paymentnotification
        FOR EACH ROW EXECUTE FUNCTION payments_paymentnotification_refuse_change();
    """,
    reverse_sql="""
    DROP TRIGGER payments_paymentnotification_append_only ON payments_paymentnotification;
    DROP FUNCTION payments_paymentnotification_refuse_change();
    """,
)


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_payments")]

    operations = [refuse_changes("payments_paymentrefund"), ONE_OUTCOME]
