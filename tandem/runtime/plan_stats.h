#pragma once

#include <cstddef>
#include <cstdint>

#include "tandem/core/export.h"

namespace tandem {

class ConcreteFunction;

/// How often functions were made ready to run, and what is kept of it (docs/functions.md). A plan
/// holds the optimised graph, the kernels and the memory of values for calls with arguments of
/// certain shapes; a shared plan, for all calls that differ in sizes alone.
struct PlanStats {
  std::int64_t made = 0;     ///< plans, shared ones among them
  std::int64_t shared = 0;   ///< plans that serve sizes that vary
  std::int64_t evicted = 0;  ///< plans dropped because memory was needed for others
  std::int64_t kept = 0;     ///< plans that wait for their next call
  std::size_t bytes = 0;     ///< that those hold, roughly
  double seconds = 0;        ///< spent on making plans, on all threads together
  /// The longest that a call whose plan was there waited because another plan was being made.
  double longest_stall = 0;
};

/// The plans of one function in the thread's current runtime. Thread-safe. Throws
/// InvalidArgumentError for an empty function.
TANDEM_EXPORT PlanStats plan_stats(const ConcreteFunction& function);

namespace config {

/// The plans of all functions that ran in the thread's current runtime, those that are gone
/// included. Thread-safe.
TANDEM_EXPORT PlanStats get_plan_stats();

/// How many bytes the plans of the thread's current runtime may hold while no call uses them, by
/// default a quarter of what the process may use of the machine's memory. Beyond, the memory of
/// those that were not used for longest is freed, then they are dropped; each function keeps the
/// plan that it used last. Takes effect when the next plan is made. Thread-safe.
TANDEM_EXPORT void set_plan_memory_limit(std::size_t bytes);
TANDEM_EXPORT std::size_t get_plan_memory_limit();

}  // namespace config
}  // namespace tandem
