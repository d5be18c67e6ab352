#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// A case that a backend cannot pass, and why. It is tried all the same: when it passes after all,
/// the suite fails until the entry is taken out.
struct ExpectedFailure {
  std::string name;    ///< "limits/exact"; "limits/*" stands for all of the group
  std::string reason;  ///< one line for people
};

struct ConformanceOptions {
  /// The index of the physical device that logical ones are made of.
  std::size_t physical = 0;
  /// Limit of the logical devices in cases that are about limits; a multiple of 1 MiB.
  std::size_t memory_limit = std::size_t{8} << 20;
  /// Bytes of the largest single copy.
  std::size_t large_copy = (std::size_t{4} << 20) + 13;
  /// Devices made and destroyed in turn.
  int many_devices = 1000;
  /// Makes a device lost, as if it fell off its bus; work that is pending then fails. Without it
  /// the cases `failure/lost_*` cannot pass, and are to be listed.
  std::function<void(Device&)> lose = nullptr;
  std::vector<ExpectedFailure> cannot = {};
  /// If given, only cases whose name contains it.
  std::string only = {};
  /// Called with each case's name before it runs, so that a case that hangs is known.
  std::function<void(std::string_view)> begin = nullptr;
};

struct CaseResult {
  enum class Outcome {
    kPassed,
    kFailed,  ///< also: it is listed as one that cannot pass, but does
    kCannot,  ///< listed, and did not pass
  };
  std::string name;
  Outcome outcome = Outcome::kPassed;
  std::string text;  ///< what went wrong, or the listed reason
};

/// What every backend promises, one named case after another: allocation, copies, streams, events,
/// failure, lifetime, limits. Needs no test framework, so that a backend of a third party is
/// checked by the same code. Each case makes devices of its own and leaves nothing behind.
///
/// Nothing is decided by time, but a case gives up and fails where nothing happens for a minute.
/// Entries of `options.cannot` that name no case are results that failed.
TANDEM_EXPORT std::vector<CaseResult> run_conformance(Backend& backend,
                                                      const ConformanceOptions& options = {});

/// True if no case failed.
TANDEM_EXPORT bool all_passed(const std::vector<CaseResult>& results);

/// A line for each case that did not pass, then "N passed, M failed, K cannot".
TANDEM_EXPORT std::string describe(const std::vector<CaseResult>& results);

}  // namespace tandem
