#include "tandem/graph/resource_manager.h"

#include <gmock/gmock.h>

#include "tests/unit/graph/graph_util.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Ref<VariableResource> variable(const std::string& name, const PartialShape& shape = {}) {
  return make_ref<VariableResource>(name, float32, shape);
}

TEST(ResourceManager, KeepsOneOfAName) {
  ResourceManager manager;
  int made = 0;
  const auto make = [&] {
    ++made;
    return Ref<Resource>(variable("v"));
  };
  const auto first = manager.lookup_or_create("", "v", make);
  EXPECT_EQ(manager.lookup_or_create("", "v", make), first);
  EXPECT_EQ(made, 1);
  EXPECT_FALSE(manager.lookup_or_create("other", "v", make) == first);
  EXPECT_EQ(manager.lookup("", "v"), first);
  EXPECT_FALSE(manager.lookup("", "w"));
  manager.remove("", "v");
  manager.remove("", "v");
  EXPECT_FALSE(manager.lookup("", "v"));
  manager.clear();
  EXPECT_FALSE(manager.lookup("other", "v"));
  EXPECT_EQ(static_cast<VariableResource&>(*first).name(), "v") << "users keep it alive";
}

TEST(ResourceManager, ForgetsWhatCouldNotBeMade) {
  ResourceManager manager;
  EXPECT_THROW(
      manager.lookup_or_create("", "v", []() -> Ref<Resource> { throw NotFoundError("x"); }),
      NotFoundError);
  EXPECT_FALSE(manager.lookup("", "v"));
}

TEST(VariableResource, ChecksWhatIsAssigned) {
  const auto v = variable("v", {2, -1});
  EXPECT_FALSE(v->initialized());
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { v->value(); }),
              HasSubstr("Could not find variable v"));
  v->assign(Array::zeros(float32, {2, 3}));
  EXPECT_TRUE(v->initialized());
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        v->assign(Array::zeros(float32, {3, 3}));
      }),
      HasSubstr("The variable shape [2,?], and the assigned value shape [3,3] are incompatible."));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                v->assign(Array::zeros(int32, {2, 3}));
              }),
              HasSubstr("'v' of dtype float a value of dtype int32"));
  EXPECT_EQ(v->value().shape(), (Shape{2, 3}));
  v->assign(Array::zeros(float32, {3, 3}), false);
  EXPECT_EQ(v->value().shape(), (Shape{3, 3}));
  EXPECT_EQ(v->debug_string(), "variable v: float[2,?]");
}

TEST(VariableResource, WritesWhereNothingElseLooks) {
  const auto v = variable("v");
  v->assign(Array::vector<float>({1, 2}));
  const void* before = v->value().raw_data();
  EXPECT_EQ(v->writable_value().raw_data(), before);
  const Array reader = v->value();
  v->writable_value().data<float>()[0] = 7;
  EXPECT_EQ(reader.values<float>()[0], 1);
  EXPECT_EQ(v->value().values<float>()[0], 7);
}

TEST(VariableOf, NeedsAHandleOfAVariable) {
  const auto v = variable("v");
  const auto info = std::make_shared<ResourceInfo>(ResourceInfo{"", "", "v", "Var", float32, {}});
  EXPECT_EQ(&variable_of(Array::scalar(ResourceHandle(info, v))), v.get());
  EXPECT_THROW(variable_of(Array::scalar(ResourceHandle())), InvalidArgumentError);
  EXPECT_THROW(variable_of(Array::scalar(1.0f)), InvalidArgumentError);
  EXPECT_THROW(variable_of(Array(resource, {2})), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { variable_of(Array::scalar(ResourceHandle(info, nullptr))); }),
              HasSubstr("The handle v does not refer to a variable."));
}

}  // namespace
}  // namespace tandem
