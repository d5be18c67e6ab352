#pragma once

// For tests that leave the driver, or the environment, in another state than they found it.

#include <cstdio>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

namespace tandem {

// Prints what failed in this test so far: a death test's own process does not.
inline void print_failures() {
  const testing::TestResult& result =
      *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.passed()) std::fprintf(stderr, "line %d: %s\n", part.line_number(), part.summary());
  }
}

/// Expects what `body` expects, in a process of its own, which then ends as any other.
inline void in_new_process(const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        print_failures();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace tandem
