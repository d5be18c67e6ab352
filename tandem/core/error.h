#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "tandem/core/export.h"

namespace tandem {

/// The canonical error codes, numbered as in TensorFlow and gRPC. docs/errors.md says when to use
/// which.
enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on.
TANDEM_EXPORT std::string_view code_name(Code code);

/// Base of everything Tandem throws. Catch this, or one of the subclasses for a code below.
class TANDEM_EXPORT Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

#define TANDEM_DECLARE_ERROR(NAME, CODE)                                      \
  class TANDEM_EXPORT NAME : public Error {                                   \
   public:                                                                    \
    explicit NAME(const std::string& message) : Error(Code::CODE, message) {} \
    NAME(const NAME&) = default;                                              \
    NAME& operator=(const NAME&) = default;                                   \
    ~NAME() override;                                                         \
  }
TANDEM_DECLARE_ERROR(CancelledError, kCancelled);
TANDEM_DECLARE_ERROR(UnknownError, kUnknown);
TANDEM_DECLARE_ERROR(InvalidArgumentError, kInvalidArgument);
TANDEM_DECLARE_ERROR(DeadlineExceededError, kDeadlineExceeded);
TANDEM_DECLARE_ERROR(NotFoundError, kNotFound);
TANDEM_DECLARE_ERROR(AlreadyExistsError, kAlreadyExists);
TANDEM_DECLARE_ERROR(PermissionDeniedError, kPermissionDenied);
TANDEM_DECLARE_ERROR(ResourceExhaustedError, kResourceExhausted);
TANDEM_DECLARE_ERROR(FailedPreconditionError, kFailedPrecondition);
TANDEM_DECLARE_ERROR(AbortedError, kAborted);
TANDEM_DECLARE_ERROR(OutOfRangeError, kOutOfRange);
TANDEM_DECLARE_ERROR(UnimplementedError, kUnimplemented);
TANDEM_DECLARE_ERROR(InternalError, kInternal);
TANDEM_DECLARE_ERROR(UnavailableError, kUnavailable);
TANDEM_DECLARE_ERROR(DataLossError, kDataLoss);
TANDEM_DECLARE_ERROR(UnauthenticatedError, kUnauthenticated);
#undef TANDEM_DECLARE_ERROR

/// Throws the subclass that belongs to `code`.
[[noreturn]] TANDEM_EXPORT void throw_error(Code code, const std::string& message);

/// The error with `line` appended on a line of its own, its code kept. An exception that is no
/// `Error` becomes an UnknownError (std::bad_alloc a ResourceExhaustedError) whose message begins
/// with its what().
TANDEM_EXPORT std::exception_ptr with_line(const std::exception_ptr& error, std::string_view line);

/// The code of a held exception: its own for an `Error`, else as `with_line` would make it.
TANDEM_EXPORT Code code_of(const std::exception_ptr& error);

/// The text of a held exception.
TANDEM_EXPORT std::string message_of(const std::exception_ptr& error);

namespace internal {

// A part of a message. Parts of all types go to one function: a text for each list of types would
// be compiled again and again.
class TextPart {
 public:
  template <class T>
  TextPart(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      text_ = value ? "true" : "false";
    } else if constexpr (std::is_null_pointer_v<T>) {
      text_ = "nullptr";
    } else if constexpr (std::is_pointer_v<T> &&
                         std::is_convertible_v<const T&, std::string_view>) {
      if (value) text_ = value;
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      text_ = value;
    } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
      kind_ = std::is_signed_v<T> ? Kind::kSigned : Kind::kUnsigned;
      number_ = static_cast<std::uint64_t>(value);
    } else {
      kind_ = Kind::kOther;
      object_ = &value;
      write_ = [](std::ostream& out, const void* object) { out << *static_cast<const T*>(object); };
    }
  }

 private:
  friend TANDEM_EXPORT std::string join_text(std::initializer_list<TextPart> parts);
  enum class Kind { kText, kSigned, kUnsigned, kOther };
  Kind kind_ = Kind::kText;
  std::string_view text_;
  union {
    std::uint64_t number_;
    const void* object_;
  };
  void (*write_)(std::ostream&, const void*);
};

TANDEM_EXPORT std::string join_text(std::initializer_list<TextPart> parts);

}  // namespace internal

/// Concatenates objects that can be written to a stream: `cat("got ", 3, " of ", shape)`. Those
/// that convert to std::string_view are taken as such; a null text is empty. Not std::hex and the
/// like.
template <class... Parts>
std::string cat(const Parts&... parts) {
  return internal::join_text({internal::TextPart(parts)...});
}

}  // namespace tandem
