#include "tandem/device/plugin/internal/retired_blocks.h"

#include <utility>

#include "tandem/device/launched_memory.h"

namespace tandem {
namespace {

RetiredBlocks*& launching() {
  thread_local RetiredBlocks* blocks = nullptr;
  return blocks;
}

}  // namespace

RetiredBlocks* RetiredBlocks::launching_on(const Device* device) {
  RetiredBlocks* const blocks = launching();
  return blocks && blocks->device_ == device ? blocks : nullptr;
}

void RetiredBlocks::add(Ref<Buffer> block) {
  const std::size_t bytes = block->size();
  blocks_.emplace(bytes, std::move(block));
}

Ref<Buffer> RetiredBlocks::take(std::size_t bytes) {
  std::erase_if(kept_, [](const Ref<Buffer>& memory) { return memory->unique(); });
  const auto found = blocks_.lower_bound(bytes);
  if (found == blocks_.end() || found->first / 2 > bytes) return {};
  Ref<Buffer> block = std::move(found->second);
  blocks_.erase(found);
  return block;
}

bool RetiredBlocks::release() {
  if (empty()) return false;
  settle_();
  clear();
  return true;
}

// On a thread that launches, what was kept is retired first.
void RetiredBlocks::clear() {
  kept_.clear();
  blocks_.clear();
}

void keep_until_over(Ref<Buffer> buffer) {
  if (RetiredBlocks* const blocks = launching()) blocks->keep(std::move(buffer));
}

RetiringScope::RetiringScope(RetiredBlocks* blocks) : saved_(std::exchange(launching(), blocks)) {}
RetiringScope::~RetiringScope() { launching() = saved_; }

}  // namespace tandem
