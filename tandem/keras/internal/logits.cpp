#include "tandem/keras/internal/logits.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::keras::internal {
namespace {

struct Note {
  LogitsKind kind;
  Tensor probabilities;
  Tensor logits;
};

// One trace's notes at a time: what another trace left can no longer be asked for.
struct Notes {
  std::uint64_t trace = 0;
  int scopes = 0;
  std::vector<Note> list;

  // Moves the list to the current trace; false if notes are not kept here.
  bool enter() {
    const Trace* current = thread_context().trace;
    const std::uint64_t id = current ? current->id() : 0;
    if (id != trace) {
      list.clear();
      trace = id;
    }
    return current || scopes > 0;
  }
};

Notes& notes() {
  thread_local Notes instance;
  return instance;
}

}  // namespace

void attach_logits(LogitsKind kind, const Tensor& probabilities, const Tensor& logits) {
  Notes& mine = notes();
  if (mine.enter()) mine.list.push_back({kind, probabilities, logits});
}

Tensor find_logits(LogitsKind kind, const Tensor& probabilities) {
  Notes& mine = notes();
  if (!mine.enter()) return {};
  const auto found = std::find_if(mine.list.rbegin(), mine.list.rend(), [&](const Note& note) {
    return note.kind == kind && note.probabilities.is_same(probabilities);
  });
  return found == mine.list.rend() ? Tensor() : found->logits;
}

LogitsScope::LogitsScope() { ++notes().scopes; }
LogitsScope::~LogitsScope() {
  Notes& mine = notes();
  if (--mine.scopes == 0) mine.list.clear();
}

}  // namespace tandem::keras::internal
