#include "tandem/runtime/execute/transfers.h"

#include <utility>

#include "tandem/device/device.h"
#include "tandem/device/lost_device.h"
#include "tandem/device/memory_space.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

void enqueue(Device* source, Device* target, Copy copy,
             std::function<void(std::exception_ptr)> done) {
  copy.done = std::move(done);
  copy_stream(source, target).enqueue(std::move(copy));
}

}  // namespace

void start_transfer(const Array& from, const Array& to,
                    std::function<void(std::exception_ptr)> done) {
  if (from.num_bytes() == 0) return done(nullptr);
  Device* const source = device_of(from);
  Device* const target = device_of(to);
  if (source) check_not_lost(*source);
  if (!source || !target || source == target || source->can_copy_to(*target))
    return enqueue(source, target, transfer(from, to), std::move(done));
  const Array staged = allocate_staging(*source, from.dtype(), from.shape());
  enqueue(source, nullptr, transfer(from, staged),
          [context = thread_context(), staged, to, target,
           done = std::move(done)](const std::exception_ptr& error) {
            if (error) return done(error);
            const ThreadContextScope scope(context);
            try {
              enqueue(nullptr, target, transfer(staged, to), done);
            } catch (...) {
              done(std::current_exception());
            }
          });
}

}  // namespace tandem
