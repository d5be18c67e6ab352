#include "tandem/device/plugin/internal/plugin_communicator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/memory_space.h"
#include "tandem/device/plugin/internal/plugin_device.h"
#include "tandem/device/plugin/internal/reaper.h"

namespace tandem {
namespace {

using Devices = std::vector<Device*>;

std::string names_of(const Devices& devices) {
  std::string names;
  for (const Device* device : devices) names += (names.empty() ? "" : ", ") + device->name();
  return names;
}

std::exception_ptr error_of(const TandemStatus& status, const std::string& devices) {
  try {
    check(status, cat("A collective of the devices ", devices, " fails"));
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

class PluginCommunicator final : public Communicator {
 public:
  PluginCommunicator(const TandemPluginApi& api, const Devices& devices)
      : api_(api), names_(names_of(devices)) {
    std::vector<TandemStream*> streams;
    for (Device* device : devices) {
      streams.push_back(
          static_cast<PluginStream&>(device->stream(StreamKind::kCompute, 0)).handle());
    }
    TandemStatus status = no_error();
    communicator_ = api_.communicator_create(streams.data(), streams.size(), &status);
    if (status.code == TANDEM_UNIMPLEMENTED) {
      communicator_ = nullptr;
      return;
    }
    if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, names_));
  }

  ~PluginCommunicator() override {
    if (!communicator_) return;
    run_off_device_threads([destroy = api_.communicator_destroy, communicator = communicator_] {
      destroy(communicator);
    });
  }

  PluginCommunicator(const PluginCommunicator&) = delete;
  PluginCommunicator& operator=(const PluginCommunicator&) = delete;

  /// False if the devices cannot work together.
  bool usable() const { return communicator_ != nullptr; }
  const std::string& names() const { return names_; }
  void keep_itself(const std::shared_ptr<PluginCommunicator>& self) { self_ = self; }

  bool supports(const DeviceCollective& what, DType dtype) const override {
    return api_.collective_supported(kind_of(what), reduction_of(what),
                                     static_cast<std::int32_t>(dtype)) != 0;
  }

  void enqueue(const DeviceCollective& what, std::vector<Member> members) override {
    // Each part is the plugin's until its `done`.
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<TandemCollectiveMember> given(members.size());
    std::vector<const TandemCollectiveMember*> pointers;
    for (std::size_t i = 0; i < members.size(); ++i) {
      parts.push_back(std::make_unique<Part>(Part{self_.lock(), std::move(members[i])}));
      const Member& member = parts.back()->member;
      given[i].size = sizeof(given[i]);
      given[i].input = member.input.valid() ? kernel_view(member.input).raw_data() : nullptr;
      given[i].output = kernel_view(member.output).raw_data();
      given[i].done = finish;
      given[i].arg = parts.back().get();
      pointers.push_back(&given[i]);
    }
    const Member& root = parts[static_cast<std::size_t>(what.root)]->member;
    const bool scatters = what.kind == DeviceCollective::kReduceScatter;
    TandemCollective work = {};
    work.size = sizeof(work);
    work.kind = kind_of(what);
    work.reduction = reduction_of(what);
    work.dtype = static_cast<std::int32_t>(root.output.dtype());
    work.root = what.root;
    work.count = static_cast<std::uint64_t>((scatters ? root.output : root.input).num_elements());
    work.members = pointers.data();
    work.num_members = pointers.size();
    TandemStatus status = no_error();
    api_.communicator_enqueue(communicator_, &work, &status);
    if (status.code != TANDEM_OK) std::rethrow_exception(error_of(status, names_));
    for (auto& part : parts) (void)part.release();  // `finish` deletes it
  }

 private:
  struct Part {
    std::shared_ptr<PluginCommunicator> communicator;
    Member member;
  };

  static std::int32_t kind_of(const DeviceCollective& what) {
    switch (what.kind) {
      case DeviceCollective::kAllGather: return TANDEM_ALL_GATHER;
      case DeviceCollective::kBroadcast: return TANDEM_BROADCAST;
      case DeviceCollective::kReduceScatter: return TANDEM_REDUCE_SCATTER;
      case DeviceCollective::kAllReduce: break;
    }
    return TANDEM_ALL_REDUCE;
  }

  static std::int32_t reduction_of(const DeviceCollective& what) {
    switch (what.reduction) {
      case DeviceCollective::kProduct: return TANDEM_REDUCE_PRODUCT;
      case DeviceCollective::kMax: return TANDEM_REDUCE_MAX;
      case DeviceCollective::kMin: return TANDEM_REDUCE_MIN;
      case DeviceCollective::kMean: return TANDEM_REDUCE_MEAN;
      case DeviceCollective::kSum: break;
    }
    return TANDEM_REDUCE_SUM;
  }

  static void finish(void* arg, const TandemStatus* status) {
    const DeviceThreadScope scope;
    const std::unique_ptr<Part> part(static_cast<Part*>(arg));
    std::exception_ptr error;
    if (status->code != TANDEM_OK) error = error_of(*status, part->communicator->names_);
    const auto done = std::move(part->member.done);
    part->member = {};
    done(std::move(error));
  }

  const TandemPluginApi& api_;
  const std::string names_;
  TandemCommunicator* communicator_ = nullptr;
  std::weak_ptr<PluginCommunicator> self_;
};

// Those that were made, by their devices in order.
struct Communicators {
  Mutex mutex;
  std::map<Devices, std::shared_ptr<PluginCommunicator>> made TANDEM_GUARDED_BY(mutex);
};

Communicators& communicators() {
  static NeverDestroyed<Communicators> all;  // devices may outlive static objects
  return *all;
}

// The interface that all devices have in common; null if there is none.
const TandemPluginApi* common_api(const Devices& devices) {
  const TandemPluginApi* api = nullptr;
  for (const Device* device : devices) {
    const auto* plugin = dynamic_cast<const PluginDevice*>(device);
    if (!plugin || !plugin->handle().api().communicator_create) return nullptr;
    if (api && api != &plugin->handle().api()) return nullptr;
    api = &plugin->handle().api();
  }
  return api;
}

}  // namespace

std::shared_ptr<Communicator> plugin_communicator(std::span<Device* const> given) {
  const Devices devices(given.begin(), given.end());
  const TandemPluginApi* const api = common_api(devices);
  if (!api) return nullptr;
  for (const Device* device : devices) check_not_lost(*device);
  Communicators& all = communicators();
  const MutexLock lock(all.mutex);
  std::shared_ptr<PluginCommunicator>& found = all.made[devices];
  if (!found) {
    try {
      found = std::make_shared<PluginCommunicator>(*api, devices);
      found->keep_itself(found);
    } catch (...) {
      all.made.erase(devices);
      throw;
    }
  }
  return found->usable() ? found : nullptr;
}

void drop_communicators_of(const PluginDevice& device) {
  std::vector<std::shared_ptr<PluginCommunicator>> dropped;  // destroyed without the lock
  Communicators& all = communicators();
  const MutexLock lock(all.mutex);
  for (auto i = all.made.begin(); i != all.made.end();) {
    const bool has = std::any_of(i->first.begin(), i->first.end(),
                                 [&](const Device* member) { return member == &device; });
    if (has) dropped.push_back(std::move(i->second));
    i = has ? all.made.erase(i) : std::next(i);
  }
}

}  // namespace tandem
