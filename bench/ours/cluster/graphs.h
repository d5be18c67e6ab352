// What bench/peers/export_cluster.py has exported.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace bench {

inline std::string graph(const std::string& name) {
  const char* folder = std::getenv("TANDEM_BENCH_MODELS");
  std::ifstream file(std::string(folder ? folder : ".") + "/" + name + ".pb", std::ios::binary);
  if (!file) throw std::runtime_error("there is no graph " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace bench
