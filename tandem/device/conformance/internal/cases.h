#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/conformance/conformance.h"
#include "tandem/device/memory_space.h"

namespace tandem::conformance {

/// Thrown by a case that does not pass.
class CaseFailure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw CaseFailure(cat(parts...));
}
template <class... Parts>
void expect(bool holds, const Parts&... parts) {
  if (!holds) fail(parts...);
}

/// What a case may use. Each case gets new devices.
class Lab {
 public:
  Lab(Backend& backend, const ConformanceOptions& options) : backend_(backend), options_(options) {}

  Backend& backend() const { return backend_; }
  const ConformanceOptions& options() const { return options_; }
  std::vector<PhysicalDevice> all() const { return backend_.physical_devices(); }
  PhysicalDevice physical() const;

  /// The index-th logical device of the physical one under test, growing, without a limit.
  std::shared_ptr<Device> make(int index = 0) const { return make(physical(), {}, index); }
  /// With the limit of the options, or a share of it.
  std::shared_ptr<Device> make_limited(std::size_t limit, int index = 0) const;
  std::shared_ptr<Device> make(const PhysicalDevice& physical, LogicalDeviceOptions options,
                               int index) const;

  /// A device on which work runs while the caller goes on.
  std::shared_ptr<Device> make_asynchronous() const;

 private:
  Backend& backend_;
  const ConformanceOptions& options_;
};

struct Case {
  const char* name;
  void (*run)(const Lab&);
};

/// Closed until opened; waiting for a minute in vain throws.
class Gate {
 public:
  void open();
  void pass();

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// Opens the gate also where a case ends by an exception, so that no device waits for it.
class OpenAtEnd {
 public:
  explicit OpenAtEnd(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  ~OpenAtEnd() { gate_->open(); }
  OpenAtEnd(const OpenAtEnd&) = delete;
  OpenAtEnd& operator=(const OpenAtEnd&) = delete;

 private:
  std::shared_ptr<Gate> gate_;
};

/// Counts calls of `done` and keeps their arguments. Shared with the callbacks, since a case
/// that fails may leave before they come.
class Outcomes {
 public:
  void add(std::exception_ptr error);
  /// Waits until there are `count`; throws after a minute in vain.
  std::vector<std::exception_ptr> wait(std::size_t count);
  std::size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::exception_ptr> errors_;
};

std::function<void(std::exception_ptr)> into(const std::shared_ptr<Outcomes>& outcomes);

/// Bytes that differ from place to place and from seed to seed.
std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint32_t seed);
/// Writes through the device's copy stream, and reads so.
void write(Device& device, const Ref<Buffer>& to, const std::vector<std::uint8_t>& bytes,
           std::size_t offset = 0);
std::vector<std::uint8_t> read(Device& device, const Ref<Buffer>& from, std::size_t bytes,
                               std::size_t offset = 0);
/// Fails with the first place that differs.
void expect_bytes(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want,
                  const std::string& what);

/// What `body` throws; fails if that is nothing.
template <class Body>
std::exception_ptr thrown_by(const char* what, Body body) {
  try {
    body();
  } catch (const CaseFailure&) {
    throw;
  } catch (...) {
    return std::current_exception();
  }
  fail(what, " throws nothing");
}
/// Fails with the error, if there is one.
void expect_success(const std::exception_ptr& error, const char* what);
void expect_code(const std::exception_ptr& error, Code code, const char* what);

/// Host work of a stream, with a `done` or without.
Work host_work(std::function<void()> run, std::function<void(std::exception_ptr)> done = {});

void add_allocation_cases(std::vector<Case>& cases);
void add_limit_cases(std::vector<Case>& cases);
void add_copy_cases(std::vector<Case>& cases);
void add_stream_cases(std::vector<Case>& cases);
void add_event_cases(std::vector<Case>& cases);
void add_failure_cases(std::vector<Case>& cases);
void add_lifetime_cases(std::vector<Case>& cases);

}  // namespace tandem::conformance
