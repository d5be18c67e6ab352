#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// What goes wrong with emulated hardware, and when. Counts begin with 1; 0 is never.
struct TANDEM_EXPORT EmulatedFaults {
  std::uint64_t lost_at = 0;   ///< the n-th work or copy enqueued: it and all that is pending fail
  std::uint64_t oom_at = 0;    ///< the n-th allocation fails
  std::uint64_t stall_at = 0;  ///< the n-th copy hangs until it is cancelled or its device gone
  double slow = 1;             ///< the link takes this many times as long

  /// "lost@3|slow@2"; empty without faults.
  std::string to_string() const;
  bool operator==(const EmulatedFaults&) const = default;
};

/// Accelerators to make out of host memory and threads.
///
///     TANDEM_EMULATE="GPU:2,memory=1GiB,link=12GB/s,latency=10us;TPU:1,compute=timed"
///
/// Each SPEC is TYPE:COUNT[,key=value]..., and several are joined by ";". Sizes take B, KiB, MiB
/// and GiB, rates B/s, KB/s, MB/s and GB/s (powers of 1000), times us, ms and s, flops a number
/// with K, M, G or T.
struct TANDEM_EXPORT EmulatedSpec {
  std::string type = "GPU";  ///< upper case, any name but CPU
  int count = 1;
  std::size_t memory = std::size_t{1} << 30;  ///< bytes of each
  double link = 12e9;                         ///< bytes a second to and from the host, each
  double latency = 10e-6;                     ///< seconds a copy
  int streams = 1;                            ///< that compute
  bool timed = false;       ///< compute=timed: work takes the time that flops and bandwidth give
  double flops = 1e12;      ///< float operations a second
  double bandwidth = 1e11;  ///< of its memory, bytes a second
  /// class=NAME: the kernel class `emulated-NAME`, foreign to the host's "cpu"; empty: "cpu".
  std::string kernel_class = {};
  std::vector<std::string> without = {};  ///< ops for which it has no kernel: without=Conv2D|MatMul
  EmulatedFaults fault = {};              ///< of each device by itself: fault=lost@3|slow@2

  /// In the form that parses to the same, every key said.
  std::string to_string() const;
  bool operator==(const EmulatedSpec&) const = default;

  /// Throws InvalidArgumentError that names `variable` (where the text comes from), the key, and
  /// what was expected. An empty text is no device.
  static std::vector<EmulatedSpec> parse(std::string_view text,
                                         std::string_view variable = "TANDEM_EMULATE");
  /// Throws InvalidArgumentError, as parse, if a field has a value that no text can give.
  void validate(std::string_view variable = "emulate") const;
};

}  // namespace tandem
