"""What property tests share: settings that a busy machine cannot fail, and JSON values."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: A decorator: no deadline and no complaint about slow generation, as these measure the machine.
property_test = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: Everything that `json.loads` can give, NaN, infinities and lone surrogates included.
json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
