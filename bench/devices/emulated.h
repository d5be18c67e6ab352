// What runs on emulated accelerators with modelled time (compute=timed) and fixed speed and link:
// how busy they are, how much of the copies is hidden, and how well a step is forecast.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/device/emulated/emulated_device.h"
#include "tandem/runtime/explain.h"
#include <tandem/tandem.h>

#include "bench/common/timing.h"

namespace bench {

namespace td = tandem;

// A machine with its host and accelerators that compute a product of 512 x 512 in some 2.7 ms.
class EmulatedMachine {
 public:
  explicit EmulatedMachine(int accelerators)
      : runtime_({.inter_op_threads = 2,
                  .intra_op_threads = 1,
                  .devices = {.emulate = {"GPU:" + std::to_string(accelerators) +
                                          ",memory=1GiB,compute=timed,flops=100G,"
                                          "bandwidth=100GB/s,link=1GB/s,latency=50us"}}}),
        scope_(runtime_) {}

  td::EmulatedDevice& accelerator(int index) const {
    for (const auto& device : runtime_.devices()) {
      auto* emulated = dynamic_cast<td::EmulatedDevice*>(device.get());
      if (emulated != nullptr && emulated->spec().index == index) return *emulated;
    }
    throw std::runtime_error("there is no emulated accelerator");
  }

 private:
  td::Runtime runtime_;
  td::RuntimeScope scope_;
};

constexpr std::int64_t kSide = 512;

inline td::Tensor host_matrix() {
  const td::DeviceScope host("/CPU:0");
  return td::fill({kSide, kSide}, 0.5f);
}

inline td::Tensor on(const char* device, const td::Tensor& value) {
  const td::DeviceScope scope(device);
  return td::identity(value);
}

// Seconds of `call`: the median of some, after those in which plans are made.
template <class Call>
double seconds_of(Call&& call) {
  for (int i = 0; i < 3; ++i) call();
  std::vector<double> times(9);
  for (double& time : times) {
    const double start = now();
    call();
    time = now() - start;
  }
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

// One call's records of compute and copies of an accelerator, by its clock.
template <class Call>
std::vector<td::StreamRecord> records_of(td::EmulatedDevice& device, Call&& call) {
  for (int i = 0; i < 3; ++i) call();
  device.keep_records(true);
  device.take_records();
  call();
  std::vector<td::StreamRecord> records = device.take_records();
  device.keep_records(false);
  return records;
}

inline double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A chain of products, each with a factor that comes from the host; the first has what it needs.
inline double copies_hidden() {
  const EmulatedMachine machine(1);
  const td::Tensor x = on("/GPU:0", host_matrix());
  std::vector<td::Tensor> factors;
  for (int i = 0; i < 20; ++i) factors.push_back(host_matrix());
  const auto step = td::function([&](td::Tensor y) {
    const td::DeviceScope scope("/GPU:0");
    y = td::matmul(y, y);
    for (const td::Tensor& factor : factors) y = td::matmul(y, factor);
    return y;
  });
  const auto records = records_of(machine.accelerator(0), [&] { step(x); });
  double copied = 0, hidden = 0;
  for (const td::StreamRecord& copy : records) {
    if (!copy.copy) continue;
    copied += seconds(copy.end - copy.begin);
    for (const td::StreamRecord& work : records) {
      if (work.copy) continue;
      const auto begin = std::max(copy.begin, work.begin), end = std::min(copy.end, work.end);
      if (begin < end) hidden += seconds(end - begin);
    }
  }
  if (copied == 0) throw std::runtime_error("nothing was copied");
  return hidden / copied;
}

// Batches are made on the host and worked on by the accelerator, which needs several times as long.
inline double busy_share() {
  const EmulatedMachine machine(1);
  const td::Tensor seed = host_matrix(), weight = on("/GPU:0", host_matrix());
  const auto step = td::function([&](td::Tensor w) {
    std::vector<td::Tensor> losses;
    for (int batch = 0; batch < 12; ++batch) {
      td::Tensor made;
      {
        const td::DeviceScope scope("/CPU:0");
        made = td::sin(seed * static_cast<float>(batch + 1));
      }
      const td::DeviceScope scope("/GPU:0");
      for (int i = 0; i < 4; ++i) made = td::matmul(made, w);
      losses.push_back(td::reduce_sum(made));
    }
    const td::DeviceScope scope("/GPU:0");
    return td::add_n(losses);
  });
  const auto records = records_of(machine.accelerator(0), [&] { step(weight); });
  double busy = 0;
  auto begin = std::chrono::steady_clock::time_point::max();
  auto end = std::chrono::steady_clock::time_point::min();
  for (const td::StreamRecord& work : records) {
    if (work.copy) continue;
    busy += seconds(work.end - work.begin);
    begin = std::min(begin, work.begin);
    end = std::max(end, work.end);
  }
  return busy / seconds(end - begin);
}

template <class Step, class... Args>
double error_of(const char* what, const Step& step, const Args&... args) {
  const double forecast = td::explain(step, args...).step_seconds;
  const double measured = seconds_of([&] { step(args...); });
  std::cerr << what << ": forecast " << 1e3 * forecast << " ms, measured " << 1e3 * measured
            << '\n';
  return std::abs(forecast - measured) / measured;
}

// A chain, copies behind it, two branches on two accelerators that meet, and values that go round.
inline double forecast_error() {
  const EmulatedMachine machine(2);
  const td::Tensor a = on("/GPU:0", host_matrix()), b = on("/GPU:1", host_matrix());
  const td::Tensor host = host_matrix();
  double most = 0;
  most = std::max(most, error_of("chain", td::function([](td::Tensor y) {
                                   const td::DeviceScope scope("/GPU:0");
                                   const td::Tensor x = y;
                                   for (int i = 0; i < 10; ++i) y = td::matmul(y, x);
                                   return y;
                                 }),
                                 a));
  most = std::max(most, error_of("copies", td::function([](td::Tensor y, td::Tensor x) {
                                   const td::DeviceScope scope("/GPU:0");
                                   for (int i = 0; i < 10; ++i) y = td::matmul(y, x);
                                   return y;
                                 }),
                                 a, host));
  most = std::max(most, error_of("branches", td::function([](td::Tensor y, td::Tensor z) {
                                   const td::Tensor first = y, second = z;
                                   for (int i = 0; i < 6; ++i) {
                                     {
                                       const td::DeviceScope scope("/GPU:0");
                                       y = td::matmul(y, first);
                                     }
                                     const td::DeviceScope scope("/GPU:1");
                                     z = td::matmul(z, second);
                                   }
                                   const td::DeviceScope scope("/GPU:0");
                                   return td::matmul(y, z);
                                 }),
                                 a, b));
  most = std::max(most, error_of("round", td::function([](td::Tensor y) {
                                   const td::Tensor x = y;
                                   for (int i = 0; i < 6; ++i) {
                                     const td::DeviceScope scope(i % 2 == 0 ? "/GPU:0" : "/GPU:1");
                                     y = td::matmul(y, x);
                                   }
                                   return y;
                                 }),
                                 a));
  return most;
}

}  // namespace bench
