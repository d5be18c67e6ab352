#include "bench/ours/life/safetensors_load.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "tandem/io/safetensors.h"
#include <tandem/tandem.h>

namespace td = tandem;

namespace bench {
namespace {

constexpr int kTensors = 32;
constexpr std::int64_t kSize = 4096;

std::string path() {
  const char* given = std::getenv("TANDEM_BENCH_SAFETENSORS");
  return given ? given : "build/bench/weights.safetensors";
}

void make_file() {
  if (std::filesystem::exists(path())) return;
  std::filesystem::create_directories(std::filesystem::path(path()).parent_path());
  std::map<std::string, td::Tensor> tensors;
  for (int i = 0; i < kTensors; ++i)
    tensors.emplace("w" + std::to_string(i), td::fill({kSize, kSize}, td::Tensor(1.0f / (i + 1))));
  td::io::save_safetensors(path(), tensors);
}

}  // namespace

Answer safetensors_load() {
  make_file();
  const td::Tensor x = td::ones({1, kSize});
  const auto begin = std::chrono::steady_clock::now();
  double check = 0;
  for (const auto& [name, w] : td::io::load_safetensors(path()))
    check += double{td::reduce_sum(td::matmul(x, w)).item<float>()};
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return {.value = took.count(), .check = check};
}

}  // namespace bench
