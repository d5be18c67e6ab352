// The memory of this process.
#pragma once

#include <fstream>
#include <string>

namespace bench {

// VmHWM, the peak of the process's resident memory, in MB of 10^6 bytes.
inline double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024 / 1e6;
  }
  return 0;
}

}  // namespace bench
