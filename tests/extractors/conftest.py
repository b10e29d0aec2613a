from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: no time limits, and nothing is kept between runs.
settings.register_profile("mnemosmith", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mnemosmith")
