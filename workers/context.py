"""What every task needs: settings, database, object store and the list of base models."""

from dataclasses import dataclass
from functools import cached_property

from sqlalchemy.orm import Session, sessionmaker

from core.db import make_engine, session_factory
from core.judges import JudgeBook
from core.notify import Announcer
from core.registry import Registry
from core.settings import Settings
from core.store import ObjectStore


@dataclass(frozen=True)
class Context:
    """Connections of one worker process; opening them contacts nobody yet."""

    settings: Settings
    sessions: sessionmaker[Session]
    store: ObjectStore
    registry: Registry

    @classmethod
    def open(cls, settings: Settings) -> "Context":
        """Connect as the settings say.

        Raises:
            ConfigurationError: the list of base models or the one of judges cannot be read.
        """
        context = cls(
            settings,
            session_factory(make_engine(settings.database_url)),
            ObjectStore.from_settings(settings),
            Registry.load(settings.models_file),
        )
        Announcer(settings.broker_url).attach(context.sessions)
        # Read now, so that a wrong file keeps the worker from starting and not a job from running.
        _ = context.judges
        return context

    @cached_property
    def judges(self) -> JudgeBook:
        """The judges that graders may ask; raises ConfigurationError."""
        return JudgeBook.load(self.settings, self.registry)
