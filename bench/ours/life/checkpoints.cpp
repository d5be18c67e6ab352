#include "bench/ours/life/checkpoints.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/memory.h"
#include "bench/common/timing.h"

namespace td = tandem;

namespace bench {
namespace {

namespace files = std::filesystem;

constexpr int kVariables = 16;

std::int64_t megabytes() {
  const char* given = std::getenv("TANDEM_BENCH_LIFE_MB");
  return given != nullptr ? std::atoll(given) : 2048;
}
std::int64_t elements() { return megabytes() * 1'000'000 / 4 / kVariables; }
double total_mb() { return static_cast<double>(elements()) * 4 * kVariables / 1e6; }

std::string folder() {
  const files::path path = files::path("build/bench/life");
  files::create_directories(path);
  return path.string();
}

void check_call(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

struct Variables {
  std::vector<td::Variable> all;
  td::train::Checkpoint checkpoint;
  Variables() {
    for (int i = 0; i < kVariables; ++i)
      all.emplace_back(td::fill({elements()}, static_cast<float>(i + 1)));
    checkpoint = td::train::Checkpoint({{"v", all}});
  }
};
Variables& variables() {
  static Variables made;
  return made;
}

void remove(const std::string& prefix) {
  for (const auto& entry : files::directory_iterator(folder()))
    if (entry.path().filename().string().starts_with(prefix)) files::remove(entry.path());
}

double first_elements() {
  double sum = 0;
  for (const td::Variable& v : variables().all)
    sum += static_cast<double>(static_cast<const float*>(v.read_value().array().raw_data())[0]);
  return sum;
}

}  // namespace

Answer save() {
  Variables& v = variables();
  remove("ours");
  const double start = now();
  v.checkpoint.write(folder() + "/ours");
  return {.value = total_mb() / (now() - start), .check = first_elements()};
}

namespace {

Answer restored(const td::train::RestoreOptions& options) {
  Variables& v = variables();
  if (!files::exists(folder() + "/ours.index")) v.checkpoint.write(folder() + "/ours");
  const double start = now();
  v.checkpoint.restore(folder() + "/ours", options).assert_consumed();
  return {.value = total_mb() / (now() - start), .check = first_elements()};
}

}  // namespace

Answer restore() { return restored({}); }
Answer restore_once() { return restored({.check_first = false}); }

Answer plain_write() {
  Variables& v = variables();
  const std::string path = folder() + "/plain";
  remove("plain");
  const double start = now();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  check_call(file >= 0, "no file can be made");
  for (const td::Variable& each : v.all) {
    const td::Array value = each.read_value().array();
    const char* data = static_cast<const char*>(value.raw_data());
    for (std::size_t left = value.num_bytes(); left > 0;) {
      const ssize_t n = write(file, data, left);
      check_call(n > 0, "the disk is full");
      data += n;
      left -= static_cast<std::size_t>(n);
    }
  }
  check_call(fsync(file) == 0, "the file could not be synced");
  close(file);
  return {.value = total_mb() / (now() - start), .check = first_elements()};
}

Answer plain_read() {
  if (!files::exists(folder() + "/plain")) plain_write();
  const auto size = static_cast<std::size_t>(files::file_size(folder() + "/plain"));
  const double start = now();
  const int file = open((folder() + "/plain").c_str(), O_RDONLY);
  check_call(file >= 0, "the file is gone");
  const std::unique_ptr<float, void (*)(void*)> memory(
      static_cast<float*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)), std::free);
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = read(file, reinterpret_cast<char*>(memory.get()) + got, size - got);
    check_call(n > 0, "the file is too short");
    got += static_cast<std::size_t>(n);
  }
  close(file);
  const double seconds = now() - start;
  double sum = 0;
  for (int i = 0; i < kVariables; ++i) sum += static_cast<double>(memory.get()[i * elements()]);
  return {.value = total_mb() / seconds, .check = sum};
}

Answer async_pause() {
  Variables& v = variables();
  remove("ours");
  double start = now();
  v.checkpoint.write(folder() + "/ours");
  const double blocking = now() - start;
  remove("ours");
  start = now();
  v.checkpoint.write(folder() + "/ours", {.enable_async = true});
  const double pause = now() - start;
  v.checkpoint.sync();
  return {.value = pause / blocking};
}

namespace {

// Weights and Adam's two moments are the size that is asked for.
struct Mlp {
  td::keras::Sequential model;
  td::Tensor x, y;
  td::train::Checkpoint checkpoint;
  Mlp() {
    const double weights = total_mb() * 1e6 / 4 / 3;
    const auto width = static_cast<std::int64_t>(std::max(64.0, std::sqrt(weights / 4)));
    model.add(td::keras::Input({width}));
    for (int i = 0; i < 4; ++i) model.add(td::keras::Dense(width, {.activation = "relu"}));
    model.compile({.optimizer = "adam", .loss = "mse"});
    x = td::random::stateless_normal({32, width}, {1, 2});
    y = td::random::stateless_normal({32, width}, {3, 4});
    checkpoint = td::train::Checkpoint({{"model", model}});
  }
  double step() {
    const double start = now();
    model.train_on_batch(x, y);
    return now() - start;
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Steps {
  double ratio = 0;
  double memory = 0;
};

Steps steps_beside_a_save() {
  static Mlp mlp;
  remove("mlp");
  for (int i = 0; i < 3; ++i) mlp.step();
  std::vector<double> before, beside;
  for (int i = 0; i < 9; ++i) before.push_back(mlp.step());
  static const double memory_before = peak_memory_mb();
  std::atomic<bool> written{false};
  mlp.checkpoint.write(
      folder() + "/mlp",
      {.enable_async = true, .write_callbacks = {[&](const std::string&) { written = true; }}});
  while (!written) beside.push_back(mlp.step());
  mlp.checkpoint.sync();
  return {median(beside) / median(before), peak_memory_mb() / memory_before};
}

}  // namespace

Answer async_steps() { return {.value = steps_beside_a_save().ratio}; }
Answer async_memory() { return {.value = steps_beside_a_save().memory}; }

}  // namespace bench
