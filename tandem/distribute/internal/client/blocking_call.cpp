#include "tandem/distribute/internal/client/blocking_call.h"

#include <future>
#include <utility>

namespace tandem::distribute {

Bytes blocking_call(Channel& channel, const char* method, Bytes request,
                    const CallOptions& options) {
  std::promise<std::pair<Status, Bytes>> answer;
  channel.call(method, std::move(request), options, [&answer](Status status, Bytes reply) {
    answer.set_value({std::move(status), std::move(reply)});
  });
  auto [status, reply] = answer.get_future().get();
  if (!status.ok()) std::rethrow_exception(status.error());
  return std::move(reply);
}

std::string address_of_target(const std::string& target) {
  constexpr std::string_view kScheme = "grpc://";
  return target.starts_with(kScheme) ? target.substr(kScheme.size()) : target;
}

}  // namespace tandem::distribute
