// A pipeline that gives no element and does not end, for the test of td data-bench.
#include "tandem/tandem.h"

extern "C" __attribute__((visibility("default"))) void tandem_dataset(tandem::data::Dataset* out) {
  *out = tandem::data::range(10).repeat().filter([](const tandem::Tensor& x) { return x < 0; });
}
