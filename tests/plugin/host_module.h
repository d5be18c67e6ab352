#pragma once

#include <cstdint>

// What the stand-ins for NVRTC and for the driver exchange as compiled code: this header, then a
// shared object for the host.

constexpr char kHostModule[16] = "host module";

struct HostModule {
  char magic[16];
  std::uint64_t bytes;
};
