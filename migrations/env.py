"""What alembic runs for every command; `core.migrate` passes the database URL."""

from alembic import context
from sqlalchemy import text

from core.db import make_engine
from core.models import Base
from core.settings import get_settings

#: Any fixed number: names the Postgres advisory lock under which one machine migrates.
_LOCK = 0x52465400


def run() -> None:
    """Migrate over one connection, in one transaction where the database allows it."""
    engine = make_engine(context.config.attributes.get("url") or get_settings().database_url)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            compare_type=True,
            render_as_batch=connection.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            context.run_migrations()
    engine.dispose()


run()
