#include "tandem/graph/rng_position.h"

#include <algorithm>
#include <atomic>

namespace tandem {
namespace {

// The finalizer of SplitMix64: each bit depends on all.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
std::uint64_t joined(std::uint64_t hash, std::uint64_t value) {
  return mixed(hash + 0x9e3779b97f4a7c15 + mixed(value));
}

constinit std::atomic<RngPosition::Current> ask_runtime{nullptr};

}  // namespace

RngPosition* RngPosition::current() {
  const Current ask = ask_runtime.load(std::memory_order_relaxed);
  return ask ? ask() : nullptr;
}
void RngPosition::set_current(Current ask) { ask_runtime.store(ask, std::memory_order_relaxed); }

std::uint64_t RngPosition::hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

RngPosition::Use& RngPosition::find(std::vector<Use>& uses, const Use& use) {
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const Use& u) {
    return u.node == use.node && u.seed == use.seed && u.seed2 == use.seed2;
  });
  return found != uses.end() ? *found : uses.emplace_back(use);
}

std::uint64_t RngPosition::take(std::string_view node, std::uint64_t seed, std::uint64_t seed2,
                                std::uint64_t blocks) {
  std::lock_guard lock(mutex_);
  Use& use = find(blocks_, {hash(node), seed, seed2, 0});
  const std::uint64_t first = use.count;
  use.count += blocks;
  return first;
}

RngPosition::Seeds RngPosition::next() {
  std::lock_guard lock(mutex_);
  return {kStageSeed, unseeded_++};
}

RngPosition::Seeds RngPosition::next(Seeds given) {
  const auto seed = static_cast<std::uint64_t>(given.seed);
  const auto seed2 = static_cast<std::uint64_t>(given.seed2);
  std::lock_guard lock(mutex_);
  const std::uint64_t before = find(given_, {0, seed, seed2, 0}).count++;
  if (before == 0) return given;
  return {given.seed, static_cast<std::int64_t>(joined(joined(seed, seed2), before))};
}

RngPosition::Stream RngPosition::next_stream() {
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = streams_++;
  }
  std::uint64_t hash = stream_.origin;
  for (const std::uint64_t part : {stream_.pass, element_, number}) hash = joined(hash, part);
  Stream made;
  made.origin = joined(hash, 1) | 1;
  for (const std::uint64_t part : {stream_.seed, stream_.seed2}) hash = joined(hash, part);
  made.seed = joined(hash, 2);
  made.seed2 = joined(hash, 3);
  return made;
}

}  // namespace tandem
