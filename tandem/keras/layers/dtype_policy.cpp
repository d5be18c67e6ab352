#include "tandem/keras/dtype_policy.h"

#include <algorithm>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/keras/internal/names.h"

namespace tandem::keras {
namespace {

struct Entry {
  const char* name;
  DType compute;
  DType variable;
};

// Like Keras prints them: the floating ones first.
constexpr Entry kPolicies[] = {
    {"float32", float32, float32},
    {"mixed_bfloat16", bfloat16, float32},
    {"mixed_float16", float16, float32},
    {"bfloat16", bfloat16, bfloat16},
    {"float16", float16, float16},
    {"float64", float64, float64},
    {"int8", int8, int8},
    {"int16", int16, int16},
    {"int32", int32, int32},
    {"int64", int64, int64},
    {"uint8", uint8, uint8},
    {"uint16", uint16, uint16},
    {"uint32", uint32, uint32},
    {"uint64", uint64, uint64},
    {"bool", boolean, boolean},
    {"complex64", complex64, complex64},
    {"complex128", complex128, complex128},
};

struct Global {
  std::mutex mutex;
  DTypePolicy policy = DTypePolicy(float32);
};

Global& global() {
  static NeverDestroyed<Global> instance;
  return *instance;
}

}  // namespace

DTypePolicy::DTypePolicy() : DTypePolicy(mixed_precision::global_policy()) {}

DTypePolicy::DTypePolicy(const std::string& name) {
  const auto* found = std::find_if(std::begin(kPolicies), std::end(kPolicies),
                                   [&](const Entry& entry) { return name == entry.name; });
  if (found == std::end(kPolicies)) {
    throw InvalidArgumentError(cat(internal::no_such("dtype policy", name, names()), "."));
  }
  name_ = found->name;
  compute_ = found->compute;
  variable_ = found->variable;
}

DTypePolicy::DTypePolicy(DType dtype) : compute_(dtype), variable_(dtype) {
  const auto* found = std::find_if(
      std::begin(kPolicies), std::end(kPolicies),
      [&](const Entry& entry) { return entry.compute == dtype && entry.variable == dtype; });
  if (found == std::end(kPolicies)) {
    throw InvalidArgumentError(
        cat("A layer cannot compute in ", dtype, ". Choose one of ", internal::join(names()), "."));
  }
  name_ = found->name;
}

std::vector<std::string> DTypePolicy::names() {
  std::vector<std::string> all;
  for (const Entry& entry : kPolicies) all.emplace_back(entry.name);
  return all;
}

namespace mixed_precision {

void set_global_policy(const DTypePolicy& policy) {
  if (!is_floating(policy.compute_dtype())) {
    throw InvalidArgumentError(cat("The global policy must compute with floating-point numbers, ",
                                   "not '", policy.name(), "'. Give single layers that dtype."));
  }
  Global& all = global();
  const std::lock_guard lock(all.mutex);
  all.policy = policy;
}

DTypePolicy global_policy() {
  Global& all = global();
  const std::lock_guard lock(all.mutex);
  return all.policy;
}

void set_dtype_policy(const DTypePolicy& policy) { set_global_policy(policy); }
DTypePolicy dtype_policy() { return global_policy(); }

}  // namespace mixed_precision
}  // namespace tandem::keras
