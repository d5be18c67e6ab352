#include "tandem/core/error.h"

#include <new>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tandem {

Error::~Error() = default;
CancelledError::~CancelledError() = default;
UnknownError::~UnknownError() = default;
InvalidArgumentError::~InvalidArgumentError() = default;
DeadlineExceededError::~DeadlineExceededError() = default;
NotFoundError::~NotFoundError() = default;
AlreadyExistsError::~AlreadyExistsError() = default;
PermissionDeniedError::~PermissionDeniedError() = default;
ResourceExhaustedError::~ResourceExhaustedError() = default;
FailedPreconditionError::~FailedPreconditionError() = default;
AbortedError::~AbortedError() = default;
OutOfRangeError::~OutOfRangeError() = default;
UnimplementedError::~UnimplementedError() = default;
InternalError::~InternalError() = default;
UnavailableError::~UnavailableError() = default;
DataLossError::~DataLossError() = default;
UnauthenticatedError::~UnauthenticatedError() = default;

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kCancelled: return "CANCELLED";
    case Code::kUnknown: return "UNKNOWN";
    case Code::kInvalidArgument: return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case Code::kNotFound: return "NOT_FOUND";
    case Code::kAlreadyExists: return "ALREADY_EXISTS";
    case Code::kPermissionDenied: return "PERMISSION_DENIED";
    case Code::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition: return "FAILED_PRECONDITION";
    case Code::kAborted: return "ABORTED";
    case Code::kOutOfRange: return "OUT_OF_RANGE";
    case Code::kUnimplemented: return "UNIMPLEMENTED";
    case Code::kInternal: return "INTERNAL";
    case Code::kUnavailable: return "UNAVAILABLE";
    case Code::kDataLoss: return "DATA_LOSS";
    case Code::kUnauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

void throw_error(Code code, const std::string& message) {
  switch (code) {
    case Code::kCancelled: throw CancelledError(message);
    case Code::kInvalidArgument: throw InvalidArgumentError(message);
    case Code::kDeadlineExceeded: throw DeadlineExceededError(message);
    case Code::kNotFound: throw NotFoundError(message);
    case Code::kAlreadyExists: throw AlreadyExistsError(message);
    case Code::kPermissionDenied: throw PermissionDeniedError(message);
    case Code::kResourceExhausted: throw ResourceExhaustedError(message);
    case Code::kFailedPrecondition: throw FailedPreconditionError(message);
    case Code::kAborted: throw AbortedError(message);
    case Code::kOutOfRange: throw OutOfRangeError(message);
    case Code::kUnimplemented: throw UnimplementedError(message);
    case Code::kInternal: throw InternalError(message);
    case Code::kUnavailable: throw UnavailableError(message);
    case Code::kDataLoss: throw DataLossError(message);
    case Code::kUnauthenticated: throw UnauthenticatedError(message);
    case Code::kOk:
    case Code::kUnknown: break;
  }
  throw UnknownError(message);
}

namespace {

struct Held {
  Code code;
  std::string message;
};

Held look(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    return {Code::kResourceExhausted,
            "Out of host memory. Use smaller batches or free tensors that are no longer needed."};
  } catch (const std::length_error& e) {
    return {Code::kResourceExhausted, cat("More was asked for than any memory holds: ", e.what())};
  } catch (const std::exception& e) {
    return {Code::kUnknown, e.what()};
  } catch (...) {
    return {Code::kUnknown, "an exception that is no std::exception was thrown"};
  }
}

}  // namespace

std::exception_ptr with_line(const std::exception_ptr& error, std::string_view line) {
  Held held = look(error);
  if (!line.empty()) held.message.append("\n\t").append(line);
  try {
    throw_error(held.code, held.message);
  } catch (...) {
    return std::current_exception();
  }
}

Code code_of(const std::exception_ptr& error) { return look(error).code; }

std::string message_of(const std::exception_ptr& error) { return look(error).message; }

namespace internal {

std::string join_text(std::initializer_list<TextPart> parts) {
  using Kind = TextPart::Kind;
  std::ostringstream out;
  out << std::boolalpha;
  for (const TextPart& part : parts) {
    switch (part.kind_) {
      case Kind::kText: out << part.text_; break;
      case Kind::kSigned: out << static_cast<std::int64_t>(part.number_); break;
      case Kind::kUnsigned: out << part.number_; break;
      case Kind::kOther: part.write_(out, part.object_); break;
    }
  }
  std::string text = std::move(out).str();
  // Readers of what() stop at the first NUL, and would miss what follows a name that holds one.
  for (std::size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
    text.replace(at, 1, "\\x00");
  return text;
}

}  // namespace internal
}  // namespace tandem
