"""Three days of a shop: quiet nights, an evening peak, and a double-date sale at midnight."""

import math
import random
from typing import Final

DAY: Final = 24 * 3600  # seconds
DAYS: Final = 3
#: The sale opens at midnight, as the 11.11 and 12.12 sales do, at the start of the second day.
SALE_OPENS: Final = DAY
SALE_TIMES_MEAN: Final = 30
_SALE_RISES: Final = 120.0  # seconds until everybody is there
_SALE_FADES: Final = 1800.0  # seconds until two thirds have bought


def rate(second: int, *, mean: float) -> float:
    """Return the expected events per second at `second`, for `mean` events per second in a day."""
    hour = (second % DAY) / 3600
    # The shop's day: least at 4 in the morning, most at 8 in the evening, twice the mean.
    daily = 1 + 0.95 * math.sin((hour - 14) / 24 * 2 * math.pi)
    return mean * (max(daily, 0.05) + _sale(second))


def _sale(second: int) -> float:
    since = second - SALE_OPENS
    if since < 0:
        return 0.0
    return SALE_TIMES_MEAN * min(since / _SALE_RISES, 1.0) * math.exp(-since / _SALE_FADES)


def arrivals(*, mean: float, seed: int = 1) -> list[int]:
    """Return how many events arrive in each second of the three days."""
    chance = random.Random(seed)  # noqa: S311
    return [_poisson(rate(second, mean=mean), chance) for second in range(DAYS * DAY)]


def _poisson(expected: float, chance: random.Random) -> int:
    if expected > 30:  # where the normal distribution is as good
        return max(0, round(chance.gauss(expected, math.sqrt(expected))))
    limit, product, count = math.exp(-expected), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count
