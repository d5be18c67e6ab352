#include "tandem/device/plugin/internal/reserved_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/plugin/internal/plugin_device.h"
#include "tandem/device/plugin/internal/plugin_memory.h"
#include "tandem/device/plugin/internal/retired_blocks.h"

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;

using Hardware = std::pair<const TandemPluginApi*, int>;

// The allocators of each physical device, and the devices that were opened on it.
struct Sharing {
  std::mutex mutex;
  std::map<Hardware, std::vector<std::weak_ptr<BlockAllocator>>> allocators;  // guarded by mutex
  std::map<TandemDevice*, Hardware> devices;                                  // guarded by mutex
};
Sharing& sharing() {
  static NeverDestroyed<Sharing> all;
  return *all;
}

// With the lock held.
std::vector<std::shared_ptr<BlockAllocator>> allocators_of(Sharing& all, const Hardware& hardware) {
  std::vector<std::shared_ptr<BlockAllocator>> there;
  for (const auto& known : all.allocators[hardware]) {
    if (auto blocks = known.lock()) there.push_back(std::move(blocks));
  }
  return there;
}

}  // namespace

std::shared_ptr<ReservedMemory> ReservedMemory::make(std::shared_ptr<PluginHandle> handle,
                                                     std::size_t most) {
  const TandemPluginApi& api = handle->api();
  if (!api.memory_granularity || most == 0) return nullptr;
  const auto granularity = static_cast<std::size_t>(api.memory_granularity(handle->get()));
  if (granularity == 0 || granularity % kUnit != 0) return nullptr;
  const std::size_t bytes = (most + granularity - 1) / granularity * granularity;
  TandemStatus status = no_error();
  void* const begin = api.memory_reserve(handle->get(), bytes, &status);
  if (status.code != TANDEM_OK || !begin) return nullptr;  // memory may still come otherwise
  return std::shared_ptr<ReservedMemory>(
      new ReservedMemory(std::move(handle), static_cast<std::byte*>(begin), bytes, granularity));
}

ReservedMemory::ReservedMemory(std::shared_ptr<PluginHandle> handle, std::byte* begin,
                               std::size_t reserved, std::size_t granularity)
    : handle_(std::move(handle)), begin_(begin), reserved_(reserved), granularity_(granularity) {}

ReservedMemory::~ReservedMemory() {
  {
    Sharing& all = sharing();
    std::lock_guard lock(all.mutex);
    all.devices.erase(handle_->get());
  }
  decommit(0);
  handle_->api().memory_unreserve(handle_->get(), begin_, reserved_);
}

void ReservedMemory::share(const std::shared_ptr<BlockAllocator>& blocks) {
  blocks_ = blocks;
  Sharing& all = sharing();
  std::lock_guard lock(all.mutex);
  const Hardware hardware{&handle_->api(), handle_->physical()};
  all.devices[handle_->get()] = hardware;
  auto& list = all.allocators[hardware];
  std::erase_if(list, [](const auto& known) { return known.expired(); });
  list.push_back(blocks);
}

std::size_t ReservedMemory::rounded_up(std::size_t bytes) const {
  return (bytes + granularity_ - 1) / granularity_ * granularity_;
}

// Memory up to `end` at least. False, with the reason in shortage_, if the hardware has no more.
bool ReservedMemory::commit(std::size_t end) {
  const std::size_t begin = committed_.empty() ? 0 : committed_.back();
  const std::size_t wanted = rounded_up(end);
  if (wanted <= begin) return true;
  TandemStatus status = no_error();
  committed_.reserve(committed_.size() + 1);
  handle_->api().memory_commit(handle_->get(), begin_ + begin, wanted - begin, &status);
  if (status.code == TANDEM_OK) {
    committed_.push_back(wanted);
    return true;
  }
  if (status.code != TANDEM_RESOURCE_EXHAUSTED)
    check(status, "The plugin cannot put memory into its reserved addresses");
  shortage_ = cat("The hardware has no more: ", text_of_status(status));
  hardware_full_ = true;
  return false;
}

void ReservedMemory::decommit(std::size_t end) noexcept {
  while (!committed_.empty()) {
    const std::size_t begin = committed_.size() == 1 ? 0 : committed_[committed_.size() - 2];
    if (begin < end) return;
    handle_->api().memory_decommit(handle_->get(), begin_ + begin, committed_.back() - begin);
    committed_.pop_back();
  }
}

std::optional<MemoryRegion> ReservedMemory::grow(std::size_t least, std::size_t wanted) {
  const std::size_t room = (reserved_ - given_) / kUnit * kUnit;
  if (least > room) {
    shortage_ = cat("The device has ", reserved_, " bytes.");
    hardware_full_ = false;
    return std::nullopt;
  }
  std::size_t bytes = std::min(wanted, room);
  while (!commit(given_ + bytes)) {
    if (bytes <= least) return std::nullopt;
    bytes = std::max(least, (bytes - bytes / 8) / kUnit * kUnit);
  }
  shortage_.clear();
  hardware_full_ = false;
  const MemoryRegion region{.begin = begin_ + given_, .bytes = bytes, .continues = given_ != 0};
  given_ += bytes;
  return region;
}

std::string ReservedMemory::way_to_more(std::size_t limit, std::size_t needed) const {
  const std::string way = RegionSource::way_to_more(limit, needed);
  return hardware_full_ ? with_less_use_by_others(way) : way;
}

void ReservedMemory::take_back(const MemoryRegion& region) noexcept {
  given_ -= region.bytes;
  decommit(given_);
}

bool ReservedMemory::ask_others() {
  std::vector<std::shared_ptr<BlockAllocator>> others;
  {
    Sharing& all = sharing();
    std::lock_guard lock(all.mutex);
    others = allocators_of(all, {&handle_->api(), handle_->physical()});
  }
  std::size_t released = 0;
  for (const auto& other : others) {
    if (other != blocks_.lock()) released += other->release_unused();
  }
  return released != 0;
}

std::size_t release_unused_memory(TandemDevice* device) {
  std::vector<std::shared_ptr<BlockAllocator>> all_blocks;
  {
    Sharing& all = sharing();
    std::lock_guard lock(all.mutex);
    if (const auto found = all.devices.find(device); found != all.devices.end())
      all_blocks = allocators_of(all, found->second);
  }
  // What is kept for later no work on its way uses.
  const RetiringScope at_once(nullptr);
  std::size_t released = 0;
  for (const auto& blocks : all_blocks) released += blocks->release_unused();
  return released;
}

}  // namespace tandem
