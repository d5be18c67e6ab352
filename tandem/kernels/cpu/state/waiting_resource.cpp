#include "tandem/kernels/cpu/state/waiting_resource.h"

namespace tandem::cpu {

bool WaitingResource::watch(std::uint64_t request, const Cancellation* cancellation,
                            RequestWatch& watch) {
  if (cancellation == nullptr) return true;
  watch.cancellation = cancellation;
  watch.token = cancellation->register_callback(
      [resource = Ref<WaitingResource>(this), request] { resource->cancel_request(request); });
  return watch.token != 0;
}

}  // namespace tandem::cpu
