#include "tandem/graph/op_registry.h"

#include <cstdlib>
#include <iostream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(OpRegistry, FindsByNameAndRegistration) {
  EXPECT_EQ(test_ops().find("TestAdd")->name, "TestAdd");
  EXPECT_EQ(test_ops().find("testadd"), nullptr);
  EXPECT_EQ(test_ops().find(""), nullptr);
  const OpRegistry other;
  EXPECT_NE(other.find("TestAdd"), test_ops().find("TestAdd")) << "each has its own";
  std::string last;
  for (const OpDef* op : test_ops().all()) {
    EXPECT_LT(last, op->name) << "sorted, each once";
    last = op->name;
  }
}

TEST(OpRegistry, SuggestsTheNearestName) {
  EXPECT_THAT(thrown<NotFoundError>([] { test_ops().get("TestAd"); }),
              HasSubstr("There is no op 'TestAd'. Did you mean 'TestAdd'?"));
  EXPECT_THAT(thrown<NotFoundError>([] { test_ops().get("testnegate"); }),
              HasSubstr("'TestNegate'"));
  const std::string far = thrown<NotFoundError>([] { test_ops().get("Qqqqqqqqqqqqqqq"); });
  EXPECT_THAT(far, HasSubstr("`td ops` lists all of them"));
  EXPECT_EQ(far.find("Did you mean"), std::string::npos) << far;
}

TEST(NearestName, CountsEdits) {
  const std::vector<std::string> names{"MatMul", "BatchMatMulV2", "Add", "AddV2"};
  EXPECT_EQ(nearest_name("matmul", names), "MatMul");
  EXPECT_EQ(nearest_name("MatMull", names), "MatMul");
  EXPECT_EQ(nearest_name("addv2", names), "AddV2");
  EXPECT_EQ(nearest_name("Convolution", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("", names), "");
  for (const char* nothing_left : {"", "*", "xy"})
    EXPECT_EQ(nearest_name(nothing_left, {"If", "ab"}), "") << nothing_left;
  EXPECT_EQ(nearest_name("i", {"If", "I"}), "I");
}

TEST(OpRegistry, TakesOpsThatComeLater) {
  const OpRegistry registry;
  EXPECT_EQ(registry.find("TestLate"), nullptr);
  static const OpRegistration late{{.name = "TestLate", .outputs = "y: float"}};
  ASSERT_NE(registry.find("TestLate"), nullptr);
  EXPECT_EQ(&registry.get(late), registry.find("TestLate"));
}

TEST(OpRegistry, MayBeAskedByManyThreads) {
  const OpRegistry registry;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_NE(registry.find("TestAdd"), nullptr);
        EXPECT_EQ(registry.find("TestUnknown"), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A second declaration stays for good, so each of these runs in a process of its own.
using OpRegistryDeathTest = ::testing::Test;

[[noreturn]] void declare_twice() {
  const OpRegistry before;
  static const OpRegistration good{{.name = "TestGood", .outputs = "y: float"}};
  static const OpRegistration twice{{.name = "TestAdd", .outputs = "y: float"}};
  for (int round = 0; round < 2; ++round) {
    try {
      OpRegistry registry;
      std::exit(1);
    } catch (const AlreadyExistsError& error) {
      std::cerr << error.what() << '\n';
    }
    try {
      before.get("TestGood");
      std::exit(2);
    } catch (const AlreadyExistsError& error) {
      std::cerr << error.what() << '\n';
    }
  }
  // What was known stays known.
  std::exit(before.find("TestAdd")->inputs.size() == 2 ? 0 : 3);
}

TEST(OpRegistryDeathTest, RefusesASecondDeclaration) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(declare_twice(), ::testing::ExitedWithCode(0),
              "(Op TestAdd is declared twice[^\n]*\n){4}");
}

}  // namespace
}  // namespace tandem
