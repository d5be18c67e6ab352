// Checkpoints of objects: what is saved, what is restored, and when.

#include "tandem/train/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Values = std::vector<float>;

Variable variable(const Values& values, const std::string& name = "v") {
  return Variable(Tensor::from(values, Shape{static_cast<std::int64_t>(values.size())}),
                  {.name = name});
}
Values values(const Variable& v) { return v.read_value().to_vector<float>(); }

class CheckpointTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }
  Folder folder_;
};

struct Net : Trackable {
  Variable w = variable({1, 2});
  std::int64_t steps = 0;
  void track(TrackedObject& object) override {
    object.add("w", w);
    object.add("steps", steps);
  }
};

TEST_F(CheckpointTest, HoldsVariablesCountersTextsAndNestedObjects) {
  Net net;
  net.w.assign({3.0f, 4.0f});
  net.steps = 7;
  std::string note = "first";
  std::vector<Variable> list{variable({5}), variable({6})};
  const Checkpoint saved({{"net", net}, {"note", note}, {"list", list}, {"again", net.w}});
  EXPECT_EQ(saved.save(path("ckpt")), path("ckpt-1"));

  Net other;
  std::string other_note;
  std::vector<Variable> others{variable({0}), variable({0})};
  const Checkpoint checkpoint(
      {{"net", other}, {"note", other_note}, {"list", others}, {"again", other.w}});
  checkpoint.restore(path("ckpt-1")).assert_consumed();
  EXPECT_THAT(values(other.w), ElementsAre(3, 4));
  EXPECT_EQ(other.steps, 7);
  EXPECT_EQ(other_note, "first");
  EXPECT_THAT(values(others[1]), ElementsAre(6));
  EXPECT_EQ(checkpoint.save(path("ckpt")), path("ckpt-2"));
}

TEST_F(CheckpointTest, SaysWhatIsMissingAndWhatIsLeftOver) {
  const Variable a = variable({1}), b = variable({2});
  const std::string saved = Checkpoint({{"a", a}, {"b", b}}).write(path("ckpt"));
  const Checkpoint less({{"a", a}});
  const LoadStatus partial = less.restore(saved);
  EXPECT_THAT(partial.unused_values(), ElementsAre("b/.ATTRIBUTES/VARIABLE_VALUE"));
  EXPECT_NO_THROW(partial.assert_existing_objects_matched());
  EXPECT_THROW(partial.assert_consumed(), FailedPreconditionError);
  const Checkpoint more({{"a", a}, {"c", variable({3})}});
  const LoadStatus status = more.restore(saved).expect_partial();
  EXPECT_THAT(status.objects_without_value(), ElementsAre("c"));
  EXPECT_THROW(status.assert_existing_objects_matched(), FailedPreconditionError);
  EXPECT_THROW(Checkpoint({{"x", a}}).restore(saved).assert_nontrivial_match(),
               FailedPreconditionError);
}

TEST_F(CheckpointTest, ChangesNothingUnlessAllFits) {
  const std::string saved =
      Checkpoint({{"a", variable({1})}, {"b", variable({1, 2})}}).write(path("ckpt"));
  const Variable a = variable({7}), b = variable({0, 0, 0}, "dense/kernel");
  try {
    Checkpoint({{"a", a}, {"b", b}}).restore(saved);
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'b' (variable dense/kernel) is float[3]"));
    EXPECT_THAT(error.what(), HasSubstr("float[2]"));
  }
  EXPECT_THAT(values(a), ElementsAre(7));
  EXPECT_THROW(Checkpoint({{"a", a}}).restore(path("none")), NotFoundError);
}

TEST_F(CheckpointTest, GivesValuesToWhatIsMadeLater) {
  const auto train = [](const keras::Dense& dense, const keras::Optimizer& optimizer) {
    GradientTape tape;
    const std::vector<Variable> weights = dense.trainable_weights();
    for (const Variable& w : weights) tape.watch(w);
    const Tensor loss = reduce_sum(square(dense(ones({2, 3}))));
    optimizer.apply(tape.gradient(loss, weights), weights);
  };
  const keras::Dense dense(2);
  const keras::Optimizer adam = keras::optimizers::Adam();
  dense(ones({2, 3}));
  train(dense, adam);
  const std::string saved =
      Checkpoint({{"layer", dense}, {"optimizer", adam}, {"late", variable({9})}})
          .write(path("ckpt"));
  train(dense, adam);

  const keras::Dense again(2);
  const keras::Optimizer adam_again = keras::optimizers::Adam();
  const Checkpoint checkpoint({{"layer", again}, {"optimizer", adam_again}});
  const LoadStatus status = checkpoint.restore(saved);
  EXPECT_THROW(status.assert_consumed(), FailedPreconditionError);
  again(ones({2, 3}));
  train(again, adam_again);
  const Variable late = variable({0});
  checkpoint.track("late", late);
  EXPECT_THAT(values(late), ElementsAre(9));
  status.assert_consumed();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(all_equal(again.weights()[i], dense.weights()[i])) << i;
  }
}

TEST_F(CheckpointTest, GoesOnWithIteratorsAndGenerators) {
  const auto dataset = data::range(20).shuffle(8, {.seed = 3}).batch(2);
  data::Iterator it = dataset.iterator();
  for (int i = 0; i < 4; ++i) it.next();
  const auto generator = random::Generator::from_seed(7);
  generator.normal({5});
  const std::string saved = Checkpoint({{"it", it}, {"g", generator}}).write(path("ckpt"));
  data::Iterator other = dataset.iterator();
  const auto other_generator = random::Generator::from_seed(1);
  Checkpoint({{"it", other}, {"g", other_generator}}).restore(saved).assert_consumed();
  EXPECT_TRUE(all_equal(generator.state().read_value(), other_generator.state().read_value()))
      << generator.state().read_value() << other_generator.state().read_value();
  const Tensor drawn = generator.uniform({4}), drawn_again = other_generator.uniform({4});
  EXPECT_TRUE(all_equal(drawn, drawn_again)) << drawn << drawn_again;
  data::Element a, b;
  while (it.next(a)) {
    ASSERT_TRUE(other.next(b));
    EXPECT_TRUE(all_equal(a[0], b[0]));
  }
  EXPECT_FALSE(other.next(b));
}

TEST_F(CheckpointTest, IsWrittenInTheBackgroundAsItWas) {
  const Variable v = variable({1, 2, 3});
  const Checkpoint checkpoint({{"v", v}});
  std::string reported;
  const std::string saved = checkpoint.save(
      path("ckpt"),
      {.enable_async = true, .write_callbacks = {[&](const std::string& p) { reported = p; }}});
  v.assign_add({10.0f, 10.0f, 10.0f});  // in place, were it not for the snapshot
  checkpoint.sync();
  EXPECT_EQ(reported, saved);
  EXPECT_EQ(latest_checkpoint(path("")), saved);
  EXPECT_THAT(values(v), ElementsAre(11, 12, 13));
  EXPECT_THAT(load_variable(saved, "v/.ATTRIBUTES/VARIABLE_VALUE").to_vector<float>(),
              ElementsAre(1, 2, 3));
}

TEST_F(CheckpointTest, AFailureInTheBackgroundIsThrownBySync) {
  std::ofstream(path("file")) << "no folder";
  const Checkpoint checkpoint({{"v", variable({1})}});
  checkpoint.write(path("file/ckpt"), {.enable_async = true});
  EXPECT_THROW(checkpoint.sync(), Error);
  EXPECT_NO_THROW(checkpoint.sync());
  EXPECT_NO_THROW(checkpoint.write(path("ckpt")));
}

TEST_F(CheckpointTest, IsShardedBySizeAndByWorker) {
  std::vector<Variable> list;
  for (int i = 0; i < 10; ++i) list.push_back(variable(Values(100, static_cast<float>(i))));
  const Checkpoint checkpoint({{"list", list}});
  const std::string saved = checkpoint.write(path("ckpt"), {.max_shard_size = 1000});
  EXPECT_TRUE(std::filesystem::exists(saved + ".data-00004-of-00005"));

  for (int worker = 0; worker < 3; ++worker)
    checkpoint.write(path("all"), {.worker = worker, .num_workers = 3});
  merge_checkpoints(path("all"), 3);
  EXPECT_FALSE(std::filesystem::exists(path("all_temp")));
  for (const std::string& each : {saved, path("all")}) {
    for (const Variable& v : list) v.assign(zeros({100}));
    checkpoint.restore(each).assert_consumed();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(values(list[static_cast<std::size_t>(i)])[99], i);
  }
  EXPECT_THROW(checkpoint.write(path("x"), {.worker = 3, .num_workers = 3}), InvalidArgumentError);
}

TEST_F(CheckpointTest, OneOfTheSameNameIsReplaced) {
  const Variable v = variable({0});
  const Checkpoint checkpoint({{"v", v}});
  for (int i = 1; i <= 3; ++i) {
    v.assign({static_cast<float>(i)});
    checkpoint.write(path("ckpt"));
    v.assign({0.0f});
    checkpoint.restore(path("ckpt")).assert_consumed();
    EXPECT_THAT(values(v), ElementsAre(i));
  }
  EXPECT_FALSE(std::filesystem::exists(path("ckpt.data-00000-of-00002")));
}

TEST_F(CheckpointTest, RestoresObjectsUnderOtherPaths) {
  const std::string saved =
      Checkpoint({{"net", {{"encoder", variable({1})}, {"decoder", variable({2})}}}})
          .write(path("ckpt"));
  const Variable mine = variable({0});
  const Checkpoint checkpoint({{"mine", mine}});
  checkpoint.restore(saved, {.renamed = {{"mine", "net/decoder"}}})
      .assert_existing_objects_matched();
  EXPECT_THAT(values(mine), ElementsAre(2));
  EXPECT_THROW(checkpoint.restore(saved, {.renamed = {{"mine", "net/none"}}}), NotFoundError);
}

TEST_F(CheckpointTest, RestoresByNameWhereTheFileHasNoObjects) {
  save_variables(path("v1"), {{"scope/a", variable({1})}, {"scope/b", variable({2})}});
  EXPECT_THAT(list_variables(path("v1")), ElementsAre(std::pair(std::string("scope/a"), Shape{1}),
                                                      std::pair(std::string("scope/b"), Shape{1})));
  const Variable a = variable({0}, "scope/a"), b = variable({0}, "mine/b");
  Checkpoint({{"x", a}}).restore(path("v1")).assert_existing_objects_matched();
  EXPECT_THAT(values(a), ElementsAre(1));
  Checkpoint({{"x", b}}).restore(path("v1"), {.renamed = {{"mine/", "scope/"}}}).expect_partial();
  EXPECT_THAT(values(b), ElementsAre(2));
  init_from_checkpoint(path("v1"), {{"scope/", "mine/"}}, {b});
  EXPECT_THROW(init_from_checkpoint(path("v1"), {{"scope/", "other/"}}, {b}), InvalidArgumentError);
  EXPECT_THROW(restore_variables(path("v1"), {{"none", a}}), NotFoundError);
}

// The values of all optimizers: tests/conformance/check_object_checkpoints.py.
TEST_F(CheckpointTest, WritesLegacyNamesAndFindsTheNumberOfStepsByThem) {
  const Variable w = variable({1, 2}, "layer/w");
  const keras::Optimizer adam = keras::optimizers::Adam({.name = "opt"});
  for (int i = 0; i < 2000; ++i) adam.apply({Tensor{0.5f, -1.0f}}, {w});
  Checkpoint({{"w", w}, {"opt", adam}}).write(path("legacy"), {.legacy_names = true});
  const CheckpointReader reader(path("legacy"));
  EXPECT_EQ(reader.get_tensor("layer/w").to_vector<float>(), values(w));
  EXPECT_EQ(reader.get_tensor("beta1_power").item<float>(), 0);  // too small for a float
  EXPECT_NEAR(reader.get_tensor("beta2_power").item<float>(), 0.1351, 1e-4);

  // A file of TensorFlow 1 lacks what is named "opt/…".
  save_variables(path("v1"), {{"scope/w", Variable(reader.get_tensor("layer/w"))},
                              {"scope/w/Adam", Variable(reader.get_tensor("layer/w/Adam"))},
                              {"scope/w/Adam_1", Variable(reader.get_tensor("layer/w/Adam_1"))},
                              {"train/beta1_power", Variable(reader.get_tensor("beta1_power"))},
                              {"train/beta2_power", Variable(reader.get_tensor("beta2_power"))}});
  const Variable again = variable({0, 0}, "layer/w");
  const keras::Optimizer other = keras::optimizers::Adam({.name = "opt"});
  const Checkpoint restored({{"w", again}, {"opt", other}});
  const LoadStatus status =
      restored.restore(path("v1"), {.renamed = {{"layer/", "scope/"}}});  // before it is built
  other.build({again});
  EXPECT_THAT(status.unused_values(), IsEmpty());
  EXPECT_EQ(other.iterations(), 2000);
  EXPECT_EQ(other.variables()[2].read_value().to_vector<float>(),
            adam.variables()[2].read_value().to_vector<float>());
}

TEST_F(CheckpointTest, LegacyNamesMustBeThereAndDiffer) {
  const Variable a = variable({1}, "same"), b = variable({2}, "same");
  try {
    Checkpoint({{"a", a}, {"b", b}}).write(path("twice"), {.legacy_names = true});
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'a' and 'b' are both named 'same'"));
  }
  std::int64_t steps = 3;
  EXPECT_THROW(Checkpoint({{"n", steps}}).write(path("none"), {.legacy_names = true}),
               InvalidArgumentError);
  EXPECT_FALSE(std::filesystem::exists(path("twice.index")));
}

TEST_F(CheckpointTest, DamageIsFoundAndNamed) {
  const Variable a = variable(Values(1000, 1)), b = variable(Values(1000, 2));
  const Checkpoint checkpoint({{"a", a}, {"b", b}});
  const std::string saved = checkpoint.write(path("ckpt"));
  std::fstream data(saved + ".data-00000-of-00001", std::ios::in | std::ios::out);
  data.seekp(6000);
  data.put('x');
  data.close();
  a.assign(zeros({1000}));
  try {
    checkpoint.restore(saved);
    FAIL();
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("b/.ATTRIBUTES/VARIABLE_VALUE"));
    EXPECT_THAT(error.what(), HasSubstr("ckpt.data-00000-of-00001"));
  }
  EXPECT_EQ(values(a)[0], 0);  // though a is whole
  std::filesystem::resize_file(saved + ".data-00000-of-00001", 5000);
  EXPECT_THROW(checkpoint.restore(saved), DataLossError);
  std::filesystem::resize_file(saved + ".index", 50);
  EXPECT_THROW(checkpoint.restore(saved), DataLossError);
}

TEST_F(CheckpointTest, DamageAtTheEndOfALargeStateChangesNothing) {
  constexpr std::int64_t kElements = 18'000'000;  // two do not fit into one group
  std::vector<Variable> state{Variable(fill({kElements}, 1.0f), {.name = "a"}),
                              Variable(fill({kElements}, 2.0f), {.name = "b"})};
  const Checkpoint checkpoint({{"state", state}});
  const std::string saved = checkpoint.write(path("large"));
  for (const Variable& v : state) v.assign(fill({kElements}, 3.0f));
  const auto first = [&](std::size_t i) {
    return static_cast<const float*>(state[i].read_value().array().raw_data())[0];
  };
  checkpoint.restore(saved).assert_consumed();
  EXPECT_EQ(first(0), 1.0f);
  EXPECT_EQ(first(1), 2.0f);
  {
    std::fstream data(saved + ".data-00000-of-00001", std::ios::in | std::ios::out);
    data.seekp(2 * kElements * 4 - 7);
    data.put('x');
  }
  for (const Variable& v : state) v.assign(fill({kElements}, 3.0f));
  try {
    checkpoint.restore(saved);
    FAIL() << "a damaged file was restored";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Tensor 'state/1/.ATTRIBUTES/VARIABLE_VALUE'"));
  }
  EXPECT_EQ(first(0), 3.0f) << "the first group is whole, but not taken alone";
  EXPECT_EQ(first(1), 3.0f);
  EXPECT_THROW(checkpoint.restore(saved, {.check_first = false}), DataLossError);
  EXPECT_EQ(first(0), 1.0f) << "what was whole is taken";
  EXPECT_EQ(first(1), 3.0f);
}

TEST_F(CheckpointTest, ObjectsNeedNamesOfTheirOwn) {
  const Variable v = variable({1});
  const Checkpoint checkpoint({{"v", v}});
  EXPECT_THROW(checkpoint.track("v", v), InvalidArgumentError);
  EXPECT_THROW(Tracked{Variable{}}, InvalidArgumentError);
  EXPECT_THROW(checkpoint.write(path("")), InvalidArgumentError);
  EXPECT_THROW(Checkpoint({{"a/", v}}).write(path("x")), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::train
