// The device sets of this folder.
#pragma once

#include <cstdlib>
#include <string>

#include "tandem/fs/file_system.h"
#include "tandem/placement/device_set.h"

namespace bench {

inline constexpr const char* kDeviceSets[] = {"two_equal_gpus", "gpu_and_cpu_1_8",
                                              "four_gpus_slow_link"};

// From bench/devices of the folder that the program runs in, or of TANDEM_BENCH_ROOT.
inline tandem::DeviceSet device_set(const std::string& name) {
  const char* root = std::getenv("TANDEM_BENCH_ROOT");
  const std::string path =
      std::string(root != nullptr ? root : ".") + "/bench/devices/" + name + ".json";
  return tandem::DeviceSet::parse_json(tandem::fs::read_file(path));
}

}  // namespace bench
