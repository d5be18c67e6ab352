// The ops of the tests outside, for this program too.
#include "tests/unit/placement/schedule_util.cpp"
