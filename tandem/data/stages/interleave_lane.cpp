#include "tandem/data/stages/interleave_lane.h"

#include <algorithm>

#include "tandem/data/observe/origin.h"

namespace tandem::data {

std::size_t first_ready(const Cycle& cycle) {
  const auto found = std::find_if(cycle.begin(), cycle.end(),
                                  [](const auto& lane) { return lane && !lane->ready.empty(); });
  return static_cast<std::size_t>(found - cycle.begin());
}

Lane* lane_with_work(const Cycle& cycle, std::size_t at,
                     const std::deque<std::unique_ptr<Lane>>& upcoming, std::size_t limit) {
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    Lane* lane = cycle[(at + i) % cycle.size()].get();
    if (lane && lane->wants_work(limit)) return lane;
  }
  const auto found = std::find_if(upcoming.begin(), upcoming.end(),
                                  [&](const auto& lane) { return lane->wants_work(limit); });
  return found == upcoming.end() ? nullptr : found->get();
}

void visit(StateArchive& state, std::unique_ptr<Lane>& lane, const NestedSource::Maker& maker) {
  bool present = lane != nullptr;
  state.value(present);
  if (!present) return;
  if (!lane) lane = std::make_unique<Lane>();
  state.value(lane->from);
  state.value(lane->number);
  state.value(lane->opened);
  state.value(lane->ended);
  state.value(lane->failed);
  const std::int64_t count = state.length(lane->ready.size());
  if (state.restoring()) lane->ready.resize(static_cast<std::size_t>(count));
  for (Lane::Item& item : lane->ready) {
    state.value(item.error);
    state.value(item.element);
    visit(state, item.origin);
  }
  lane->source.visit_state(state, maker);
  state.require(!lane->opened || lane->ended || lane->source.is_open(), "a dataset is missing");
}

}  // namespace tandem::data
