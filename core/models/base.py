"""What every table shares: the naming of constraints, JSON, and columns that many have."""

from sqlalchemy import JSON, BigInteger, Integer, MetaData
from sqlalchemy.orm import DeclarativeBase

Json = JSON(none_as_null=True)

#: SQLite numbers rows by itself only in a column of type INTEGER.
RowNumber = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Naming every constraint lets migrations alter them on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
