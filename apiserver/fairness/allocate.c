/* Max-min fairness with bounds: the common fraction is searched among the places where somebody meets a bound. */
#include <math.h>
#include <stdlib.h>

#include "apiserver/fairness/level.h"
#include "base/mem.h"

#define TARGET_MIN 0.001 /* nobody wants nothing: there is something to divide by */
#define EPSILON 1e-7

static double share_at(const struct allocation *a, double fraction)
{
	double share = fraction * MAX(a->target, TARGET_MIN);
	if (share > a->high)
		share = a->high;
	return MAX(a->low, share);
}

static double sum_at(const struct allocation *a, size_t n, double fraction)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += share_at(&a[i], fraction);
	return sum;
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

/* Between two bounds the sum grows evenly. */
static double find_fraction(double sum, const struct allocation *a, size_t n, const double *bounds)
{
	double below = bounds[0], sum_below = sum_at(a, n, below);
	for (size_t i = 1; i < 2 * n; i++) {
		double at = sum_at(a, n, bounds[i]);
		if (at >= sum)
			return at > sum_below ? below + (bounds[i] - below) * (sum - sum_below) / (at - sum_below) : bounds[i];
		below = bounds[i];
		sum_below = at;
	}
	return below;
}

bool allocate(double sum, struct allocation *a, size_t n, double *ret_fraction)
{
	double lows = 0, highs = 0;
	for (size_t i = 0; i < n; i++) {
		lows += a[i].low;
		highs += a[i].high;
	}
	if (!n || sum < lows - EPSILON || sum > highs + EPSILON)
		return false;
	double *bounds = mem_array(2 * n, sizeof *bounds);
	for (size_t i = 0; i < n; i++) {
		double target = MAX(a[i].target, TARGET_MIN);
		bounds[2 * i] = a[i].low / target;
		bounds[2 * i + 1] = a[i].high / target;
	}
	qsort(bounds, 2 * n, sizeof *bounds, compare);
	*ret_fraction = find_fraction(sum, a, n, bounds);
	free(bounds);
	for (size_t i = 0; i < n; i++)
		a[i].share = share_at(&a[i], *ret_fraction);
	return true;
}
