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


class Migration(migrations.Migration):
    dependencies = [("orders", "0001_shop")]

    operations = [
        refuse_changes("orders_stockmovement"),
        refuse_changes("orders_ordertransition"),
    ]
