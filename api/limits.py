"""Requests per minute, counted in Redis so that all API processes count together.

A project or key with N requests a minute has N at once and gets one back every 60/N seconds (a
leaky bucket; the script below is the generic cell rate algorithm). When Redis does not answer,
requests are let through uncounted: a limit protects the service and must not take it down.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from core.errors import QuotaExceeded, RateLimited
from core.keys import Principal

logger = logging.getLogger(__name__)

#: Seconds to wait for Redis, and seconds to do without it once it has failed.
TIMEOUT_S, PAUSE_S = 0.25, 5.0
MINUTE_US = 60_000_000
_PREFIX = "rft:requests:"

#: Of each bucket the time at which it will be full again is stored, in microseconds. Arguments are
#: pairs of interval (between two requests) and size; the answer is how long the caller must wait,
#: 0 when the request was counted, then how long each bucket takes to be full.
_SCRIPT = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local wait, full = 0, {}
for i, key in ipairs(KEYS) do
  full[i] = math.max(tonumber(redis.call('GET', key) or now), now)
  local interval, size = ARGV[2 * i - 1], ARGV[2 * i]
  wait = math.max(wait, full[i] + interval - size * interval - now)
end
if wait <= 1 then wait = 0 end
local answer = {math.ceil(wait)}
for i, key in ipairs(KEYS) do
  if wait == 0 then
    full[i] = full[i] + ARGV[2 * i - 1]
    redis.call('SET', key, string.format('%.0f', full[i]), 'PX',
               math.ceil((full[i] - now) / 1000) + 1)
  end
  answer[i + 1] = math.ceil(full[i] - now)
end
return answer
"""


@dataclass(frozen=True)
class Rate:
    """Where one limit stands after a request; times are in microseconds."""

    limit: int
    full_after_us: int

    @property
    def remaining(self) -> int:
        """How many requests may follow at once."""
        used = self.full_after_us * self.limit / MINUTE_US
        return max(int(self.limit - used + 1e-6), 0)

    def headers(self) -> dict[str, str]:
        """OpenAI's headers."""
        return {
            "x-ratelimit-limit-requests": str(self.limit),
            "x-ratelimit-remaining-requests": str(self.remaining),
            "x-ratelimit-reset-requests": duration(self.full_after_us),
        }


class RequestLimiter:
    """Counts requests; contacts Redis only for projects and keys that have a limit."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(
            redis_url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
        )
        self._script = self._redis.register_script(_SCRIPT)
        self._away_until = 0.0
        self._away = False

    def limits(self, principal: Principal) -> bool:
        """Say whether the requests of `principal` are counted at all."""
        return bool(_buckets(principal))

    def count(self, principal: Principal, headers: dict[str, str]) -> None:
        """Count one request and put OpenAI's rate headers into `headers`.

        Raises `RateLimited` when it is one too many; such a request is not counted.
        """
        buckets = _buckets(principal)
        if not buckets or time.monotonic() < self._away_until:
            return
        answer = self._ask(buckets)
        if answer is None:
            return
        wait_us, *full = answer
        counted = zip(buckets.items(), full, strict=True)
        rates = {name: Rate(limit, us) for (name, limit), us in counted}
        name, tightest = min(rates.items(), key=lambda item: item[1].remaining)
        headers.update(tightest.headers())
        if wait_us:
            raise _refusal(name, tightest.limit, wait_us)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _ask(self, buckets: Mapping[str, int]) -> list[int] | None:
        arguments = [each for limit in buckets.values() for each in (MINUTE_US / limit, limit)]
        try:
            answer: list[int] = self._script(keys=list(buckets), args=arguments)
        except RedisError as error:
            self._away_until = time.monotonic() + PAUSE_S
            if not self._away:
                logger.warning("Requests are not limited while Redis is away: %s", error)
            self._away = True
            return None
        if self._away:
            logger.warning("Redis is back; requests are limited again")
            self._away = False
        return answer


def duration(microseconds: int) -> str:
    """Write a time as OpenAI's headers do: `120ms`, `7.5s`, `1m0s`."""
    milliseconds = -(-microseconds // 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds = f"{rest / 1000:g}s"
    return f"{minutes}m{seconds}" if minutes else seconds


def _buckets(principal: Principal) -> dict[str, int]:
    """Return the name and size of each limit that the request counts for."""
    limits = principal.limits
    sizes = {
        f"{_PREFIX}project {principal.project_id}": limits.requests_per_minute,
        f"{_PREFIX}key {principal.key_id}": limits.requests_per_minute_per_key,
    }
    if 0 in sizes.values():
        raise QuotaExceeded(
            "The operator has set this project's requests per minute to 0; have that changed.",
            kind="requests",
            code="rate_limit_exceeded",
        )
    return {name: size for name, size in sizes.items() if size is not None}


def _refusal(bucket: str, limit: int, wait_us: int) -> RateLimited:
    return RateLimited(
        f"Rate limit reached for requests of {bucket.removeprefix(_PREFIX)}: {limit} per minute."
        f" Please try again in {duration(wait_us)}.",
        retry_after_s=wait_us / 1_000_000,
    )
