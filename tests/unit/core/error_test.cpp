#include "tandem/core/error.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tandem/core/ref.h"

namespace tandem {
namespace {

template <class E>
void check(Code code, int number, const char* name) {
  EXPECT_EQ(static_cast<int>(code), number);
  EXPECT_EQ(code_name(code), name);
  try {
    throw_error(code, "text");
  } catch (const E& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_STREQ(error.what(), "text");
  } catch (...) {
    ADD_FAILURE() << name << " is thrown as another class";
  }
  EXPECT_EQ(E("x").code(), code);
}

TEST(Error, HasAClassForEachCode) {
  check<CancelledError>(Code::kCancelled, 1, "CANCELLED");
  check<UnknownError>(Code::kUnknown, 2, "UNKNOWN");
  check<InvalidArgumentError>(Code::kInvalidArgument, 3, "INVALID_ARGUMENT");
  check<DeadlineExceededError>(Code::kDeadlineExceeded, 4, "DEADLINE_EXCEEDED");
  check<NotFoundError>(Code::kNotFound, 5, "NOT_FOUND");
  check<AlreadyExistsError>(Code::kAlreadyExists, 6, "ALREADY_EXISTS");
  check<PermissionDeniedError>(Code::kPermissionDenied, 7, "PERMISSION_DENIED");
  check<ResourceExhaustedError>(Code::kResourceExhausted, 8, "RESOURCE_EXHAUSTED");
  check<FailedPreconditionError>(Code::kFailedPrecondition, 9, "FAILED_PRECONDITION");
  check<AbortedError>(Code::kAborted, 10, "ABORTED");
  check<OutOfRangeError>(Code::kOutOfRange, 11, "OUT_OF_RANGE");
  check<UnimplementedError>(Code::kUnimplemented, 12, "UNIMPLEMENTED");
  check<InternalError>(Code::kInternal, 13, "INTERNAL");
  check<UnavailableError>(Code::kUnavailable, 14, "UNAVAILABLE");
  check<DataLossError>(Code::kDataLoss, 15, "DATA_LOSS");
  check<UnauthenticatedError>(Code::kUnauthenticated, 16, "UNAUTHENTICATED");
}

TEST(Error, GainsLinesAndKeepsItsCode) {
  const auto first = std::make_exception_ptr(NotFoundError("no file"));
  const auto second = with_line(with_line(first, "in map, element 3"), "in fit");
  EXPECT_EQ(code_of(second), Code::kNotFound);
  EXPECT_EQ(message_of(second), "no file\n\tin map, element 3\n\tin fit");
  EXPECT_THROW(std::rethrow_exception(second), NotFoundError);
  EXPECT_EQ(message_of(with_line(first, "")), "no file");
}

TEST(Error, IsMadeOfForeignExceptions) {
  const auto foreign = std::make_exception_ptr(std::logic_error("x"));
  EXPECT_EQ(code_of(foreign), Code::kUnknown);
  EXPECT_EQ(message_of(with_line(foreign, "here")), "x\n\there");
  EXPECT_EQ(code_of(std::make_exception_ptr(std::bad_alloc())), Code::kResourceExhausted);
  EXPECT_EQ(code_of(std::make_exception_ptr(std::length_error("v"))), Code::kResourceExhausted);
  EXPECT_EQ(code_of(std::make_exception_ptr(7)), Code::kUnknown);
  EXPECT_THROW(std::rethrow_exception(with_line(std::make_exception_ptr(7), "here")), UnknownError);
}

TEST(Cat, JoinsWhatCanBePrinted) { EXPECT_EQ(cat("a", 1, ' ', 2.5, true), "a1 2.5true"); }

TEST(Cat, TakesNullTexts) {
  const char* none = nullptr;
  EXPECT_EQ(cat("<", none, ">"), "<>");
  EXPECT_EQ(cat("<", nullptr, ">"), "<nullptr>");
}

struct Counted : RefCounted {
  explicit Counted(int& count) : alive(count) { ++alive; }
  ~Counted() override { --alive; }
  int& alive;
};

TEST(Ref, CountsItsUsers) {
  int alive = 0;
  {
    Ref<Counted> first = make_ref<Counted>(alive);
    EXPECT_TRUE(first->unique());
    Ref<RefCounted> second = first;
    EXPECT_FALSE(first->unique());
    second = second.get() == first.get() ? Ref<RefCounted>() : second;
    EXPECT_TRUE(first->unique());
    Ref<Counted> third = std::move(first);
    EXPECT_FALSE(first);  // NOLINT: what is left is empty
    EXPECT_EQ(alive, 1);
    Counted* raw = third.detach();
    EXPECT_EQ(alive, 1);
    raw->release();
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace tandem
