#include "tandem/device/conformance/internal/cases.h"

#include <chrono>
#include <utility>

namespace tandem::conformance {
namespace {

constexpr std::chrono::minutes kPatience{1};

}  // namespace

PhysicalDevice Lab::physical() const {
  const auto devices = all();
  expect(options_.physical < devices.size(), "the backend has ", devices.size(),
         " physical devices, none of index ", options_.physical, ". ", backend_.unavailable());
  return devices[options_.physical];
}

std::shared_ptr<Device> Lab::make(const PhysicalDevice& physical, LogicalDeviceOptions options,
                                  int index) const {
  DeviceSpec spec = DeviceSpec::default_task();
  spec.type = physical.device_type;
  spec.index = index;
  if (!options.memory_limit) options.memory_growth = true;
  auto device = backend_.make_device(physical, options, std::move(spec));
  expect(device != nullptr, "make_device returns null");
  return device;
}

std::shared_ptr<Device> Lab::make_limited(std::size_t limit, int index) const {
  return make(physical(), {.memory_limit = limit, .memory_growth = true}, index);
}

std::shared_ptr<Device> Lab::make_asynchronous() const {
  auto device = make();
  expect(!device->synchronous(), "the device is synchronous: work runs within enqueue");
  return device;
}

void Gate::open() {
  std::lock_guard lock(mutex_);
  open_ = true;
  opened_.notify_all();
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  if (!opened_.wait_for(lock, kPatience, [&] { return open_; })) {
    fail("work waited a minute for a gate that the caller was to open: is the caller blocked?");
  }
}

void Outcomes::add(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  errors_.push_back(std::move(error));
  added_.notify_all();
}

std::vector<std::exception_ptr> Outcomes::wait(std::size_t count) {
  std::unique_lock lock(mutex_);
  if (!added_.wait_for(lock, kPatience, [&] { return errors_.size() >= count; })) {
    fail("after a minute `done` was called ", errors_.size(), " times, not ", count);
  }
  return errors_;
}

std::size_t Outcomes::count() const {
  std::lock_guard lock(mutex_);
  return errors_.size();
}

std::function<void(std::exception_ptr)> into(const std::shared_ptr<Outcomes>& outcomes) {
  return [outcomes](std::exception_ptr error) { outcomes->add(std::move(error)); };
}

std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::uint8_t> out(bytes);
  std::uint32_t state = seed * 2654435761u + 1;
  for (std::uint8_t& byte : out) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return out;
}

void write(Device& device, const Ref<Buffer>& to, const std::vector<std::uint8_t>& bytes,
           std::size_t offset) {
  device.copy_from_host(bytes.data(), to, offset, bytes.size());
}

std::vector<std::uint8_t> read(Device& device, const Ref<Buffer>& from, std::size_t bytes,
                               std::size_t offset) {
  std::vector<std::uint8_t> out(bytes, 0xee);
  device.copy_to_host(from, offset, out.data(), bytes);
  return out;
}

void expect_bytes(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want,
                  const std::string& what) {
  expect(got.size() == want.size(), what, ": ", got.size(), " bytes, not ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    expect(got[i] == want[i], what, ": byte ", i, " of ", want.size(), " is ", int{got[i]},
           ", not ", int{want[i]});
  }
}

void expect_success(const std::exception_ptr& error, const char* what) {
  if (error) fail(what, " fails: ", message_of(error));
}

void expect_code(const std::exception_ptr& error, Code code, const char* what) {
  expect(error != nullptr, what, " reports no failure; it must report ", code_name(code));
  expect(code_of(error) == code, what, " reports ", code_name(code_of(error)), " (",
         message_of(error), "), not of ", code_name(code));
}

Work host_work(std::function<void()> run, std::function<void(std::exception_ptr)> done) {
  return {.run = std::move(run), .done = std::move(done), .on_host = true};
}

}  // namespace tandem::conformance
