#include "tandem/keras/internal/masks.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras::internal {
namespace {

struct Note {
  std::uint64_t trace;  // 0: an eager value
  Tensor tensor;
  Tensor mask;
};

struct Notes {
  int scopes = 0;
  std::vector<Note> list;

  // Drops what no one can ask for any more: notes of traces that are over, eager ones outside of a
  // scope.
  void sweep() {
    if (list.empty()) return;
    std::erase_if(list, [&](const Note& note) {
      if (note.trace == 0) return scopes == 0;
      for (const Trace* t = thread_context().trace; t; t = t->outer()) {
        if (t->id() == note.trace) return false;
      }
      return true;
    });
  }
};

Notes& notes() {
  thread_local Notes instance;
  return instance;
}

}  // namespace

bool keeps_masks() { return thread_context().trace || notes().scopes > 0; }

void attach_mask(const Tensor& tensor, const Tensor& mask) {
  if (!keeps_masks()) return;
  Notes& mine = notes();
  mine.sweep();
  const Trace* trace = thread_context().trace;
  mine.list.push_back({trace ? trace->id() : 0, tensor, mask});
}

Tensor find_mask(const Tensor& tensor) {
  Notes& mine = notes();
  mine.sweep();
  const auto found = std::find_if(mine.list.rbegin(), mine.list.rend(),
                                  [&](const Note& note) { return note.tensor.is_same(tensor); });
  return found == mine.list.rend() ? Tensor() : found->mask;
}

MaskScope::MaskScope() { ++notes().scopes; }
MaskScope::~MaskScope() {
  --notes().scopes;
  notes().sweep();
}

}  // namespace tandem::keras::internal
