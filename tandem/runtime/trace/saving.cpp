#include "tandem/runtime/saving.h"

#include <atomic>

#include "tandem/core/error.h"

namespace tandem {

ObjectCheckpoint::~ObjectCheckpoint() = default;
Saving::~Saving() = default;

namespace {

// Set while libraries are loaded, before or after this file's own objects are made.
std::atomic<const Saving*>& registered() {
  static std::atomic<const Saving*> saving{nullptr};
  return saving;
}

}  // namespace

void register_saving(const Saving& saving) { registered().store(&saving); }

const Saving& saving_for(const std::string& what) {
  const Saving* saving = registered().load();
  if (saving == nullptr) {
    throw UnimplementedError(
        cat(what,
            ": this build of Tandem lacks the part io, which reads and writes files of "
            "TensorFlow's formats."));
  }
  return *saving;
}

}  // namespace tandem
