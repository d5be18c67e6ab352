#include "tandem/distribute/internal/rpc/method_table.h"

#include <exception>
#include <future>

namespace tandem::distribute {
namespace {

constexpr std::size_t kMaxUnknown = 64;  // names, which peers choose
constexpr std::size_t kMaxMessage = 3072;

}  // namespace

std::exception_ptr Status::error() const {
  try {
    throw_error(code, message);
  } catch (...) {
    return std::current_exception();
  }
}

std::string Status::message_to_send() const {
  if (message.size() <= kMaxMessage) return message;
  return message.substr(0, kMaxMessage) + " ... [truncated]";
}

std::pair<Status, Bytes> Channel::call_and_wait(const char* method, Bytes request,
                                                const CallOptions& options) {
  std::promise<std::pair<Status, Bytes>> answer;
  call(method, std::move(request), options, [&answer](Status status, Bytes reply) {
    answer.set_value({std::move(status), std::move(reply)});
  });
  return answer.get_future().get();
}

std::vector<std::string> MethodTable::unary_methods() const {
  std::vector<std::string> names;
  for (const auto& [name, method] : methods_) {
    if (!is_stream(name)) names.push_back(name);
  }
  return names;
}

std::map<std::string, std::int64_t> MethodTable::unknown_calls() const {
  const MutexLock lock(mutex_);
  return unknown_calls_;
}

void MethodTable::call(std::string_view method, Bytes request, const CallContext& context,
                       ReplyDone done) {
  const auto found = methods_.find(std::string(method));
  if (found == methods_.end()) {
    {
      const MutexLock lock(mutex_);
      if (unknown_calls_.size() < kMaxUnknown || unknown_calls_.contains(std::string(method)))
        ++unknown_calls_[std::string(method)];
    }
    return done({.code = Code::kUnimplemented}, {});
  }
  try {
    found->second(std::move(request), context, done);
  } catch (...) {
    done(Status::of(std::current_exception()), {});
  }
}

}  // namespace tandem::distribute
