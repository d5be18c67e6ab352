// Checkpoints of objects that TensorFlow exchanges with us; check_object_checkpoints.py has its
// side.
//
//   object_checkpoints save DIR    checkpoints in DIR/ours, and what was in them in DIR/ours.json
//   object_checkpoints load DIR    what the checkpoints in DIR/theirs hold, to DIR/loaded.json

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/tandem.h"

namespace {

namespace td = tandem;
using nlohmann::json;
using td::train::Checkpoint;

struct Objects {
  td::Variable a{td::Tensor{1.0f, 2.0f, 3.0f}, {.name = "a"}};
  std::vector<td::Variable> list{td::Variable(td::Tensor{1, 2}), td::Variable(td::Tensor(true))};
  td::Variable text{td::Tensor(std::string("words"))};
  std::int64_t steps = 5;
  td::random::Generator generator = td::random::Generator::from_seed(7);
  td::keras::Sequential model{td::keras::Input({3}), td::keras::Dense(2)};
  td::keras::Optimizer optimizer = td::keras::optimizers::Adam({.learning_rate = 0.1});

  void train() {
    td::GradientTape tape;
    const auto weights = model.trainable_weights();
    for (const td::Variable& w : weights) tape.watch(w);
    const td::Tensor loss = td::reduce_sum(td::square(model(td::ones({2, 3}))));
    optimizer.apply(tape.gradient(loss, weights), weights);
  }
  Checkpoint checkpoint() {
    return Checkpoint({{"nested", {{"a", a}, {"again", a}}},
                       {"list", list},
                       {"text", text},
                       {"steps", steps},
                       {"generator", generator},
                       {"model", model},
                       {"optimizer", optimizer}});
  }
  json values() {
    json all;
    all["a"] = a.read_value().to_vector<float>();
    all["list"] = list[0].read_value().to_vector<int>();
    all["text"] = text.read_value().item<std::string>();
    all["steps"] = steps;
    all["iterations"] = optimizer.iterations();
    all["prediction"] = model(td::ones({2, 3})).to_vector<float>();
    train();
    all["trained"] = model(td::ones({2, 3})).to_vector<float>();
    all["normal"] = generator.normal({3}).to_vector<float>();
    all["uniform"] = generator.uniform({2}).to_vector<float>();
    all["integers"] = generator.uniform({3}, 0, 100, td::int32).to_vector<int>();
    all["truncated"] = generator.truncated_normal({2}).to_vector<float>();
    return all;
  }
};

void save(const std::string& folder) {
  Objects objects;
  objects.a.assign({4.0f, 5.0f, 6.0f});
  objects.steps = 9;
  objects.train();
  objects.generator.skip(10);
  td::data::Iterator iterator = td::data::range(10).batch(2).iterator();
  Checkpoint checkpoint = objects.checkpoint();
  checkpoint.write(folder + "/ours/twice");
  checkpoint.write(folder + "/ours/twice");
  checkpoint.write(folder + "/ours/sharded", {.max_shard_size = 16});
  for (int worker = 0; worker < 2; ++worker)
    checkpoint.write(folder + "/ours/workers", {.worker = worker, .num_workers = 2});
  td::train::merge_checkpoints(folder + "/ours/workers", 2);
  const td::train::CheckpointManager manager(checkpoint, folder + "/ours/managed",
                                             {.max_to_keep = 2});
  for (int i = 0; i < 3; ++i) manager.save({.checkpoint = {.enable_async = true}});
  manager.sync();
  checkpoint.track("iterator", iterator);
  checkpoint.write(folder + "/ours/with_iterator");
  td::train::save_variables(folder + "/ours/named", {{"scope/a", objects.a}});
  std::ofstream(folder + "/ours.json") << objects.values();
}

// One layer and an optimizer that older ones are compared with; as in check_object_checkpoints.py.
struct Former {
  td::Variable kernel{td::ones({3, 2}), {.name = "layer/kernel"}};
  td::Variable bias{td::zeros({2}), {.name = "layer/bias"}};
  td::keras::Optimizer optimizer;

  explicit Former(const std::string& name) : optimizer(make(name)) {
    optimizer.build({kernel, bias});
  }
  static td::keras::Optimizer make(const std::string& name) {
    namespace o = td::keras::optimizers;
    if (name == "Adam") return o::Adam({.learning_rate = 0.1});
    if (name == "Momentum") return o::SGD({.learning_rate = 0.1, .momentum = 0.9});
    if (name == "RMSProp") return o::RMSprop({.learning_rate = 0.1, .rho = 0.9, .epsilon = 1e-6});
    if (name == "CenteredRMSProp")
      return o::RMSprop(
          {.learning_rate = 0.1, .rho = 0.9, .momentum = 0.5, .epsilon = 1e-6, .centered = true});
    if (name == "Adagrad") return o::Adagrad({.learning_rate = 0.1, .epsilon = 1e-12});
    if (name == "Adadelta") return o::Adadelta({.learning_rate = 0.1, .epsilon = 1e-6});
    return o::Ftrl({.learning_rate = 0.1, .l1_regularization_strength = 0.01});
  }
  Checkpoint checkpoint() const {
    return Checkpoint({{"kernel", kernel}, {"bias", bias}, {"optimizer", optimizer}});
  }
  void train() const {
    td::GradientTape tape;
    tape.watch(kernel);
    tape.watch(bias);
    const td::Tensor x = td::reshape(td::cast(td::range(6), td::float32), {2, 3});
    const td::Tensor loss = td::reduce_sum(td::square(td::matmul(x, kernel) + bias - 1.0f));
    optimizer.apply(tape.gradient(loss, {kernel, bias}), {kernel, bias});
  }
  json values() const {
    return {{"kernel", kernel.read_value().to_vector<float>()},
            {"bias", bias.read_value().to_vector<float>()},
            {"steps", optimizer.iterations()}};
  }
};

// Optimizers of TensorFlow 1 and of tf.keras before Keras 3, whose checkpoints are
// DIR/theirs/former/KIND_NAME: a step more here, saved under their names, and one more after that.
json exchange_former(const std::string& folder) {
  json all;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/theirs/former")) {
    if (entry.path().extension() != ".index") continue;
    const std::string path = entry.path().parent_path() / entry.path().stem();
    const std::string id = entry.path().stem();
    const Former former(id.substr(id.find('_') + 1));
    const auto status = former.checkpoint().restore(path);
    status.expect_partial();
    json& of = all[id];
    of["left"] = status.unused_values();
    of["restored"] = former.values();
    former.train();
    of["trained"] = former.values();
    former.checkpoint().write(folder + "/ours/former/" + id, {.legacy_names = true});
    // What we wrote so is read here too.
    const Former again(id.substr(id.find('_') + 1));
    again.checkpoint().restore(folder + "/ours/former/" + id).assert_existing_objects_matched();
    former.train();
    again.train();
    of["further"] = former.values();
    of["again"] = again.values();
  }
  return all;
}

void load(const std::string& folder) {
  json all;
  for (const char* name : {"plain", "sharded", "managed", "with_iterator"}) {
    const std::string theirs = folder + "/theirs/" + name;
    Objects objects;
    const Checkpoint checkpoint = objects.checkpoint();
    if (std::string(name) == "managed") {
      td::train::CheckpointManager manager(checkpoint, theirs, {.max_to_keep = 2});
      all["latest"] = manager.restore_or_initialize().value();
      all["listed"] = manager.checkpoints();
      all[name] = objects.values();
      continue;
    }
    const auto status = checkpoint.restore(theirs);
    all[name] = objects.values();  // makes what the optimizer keeps, which gets its values then
    if (std::string(name) == "with_iterator") {
      status.assert_existing_objects_matched().expect_partial();
    } else {
      status.assert_consumed();
    }
  }
  Objects objects;
  Checkpoint({{"x", objects.a}})
      .restore(folder + "/theirs/named")
      .assert_existing_objects_matched();
  all["named"] = objects.a.read_value().to_vector<float>();
  all["former"] = exchange_former(folder);
  std::ofstream(folder + "/loaded.json") << all;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  std::filesystem::create_directories(argv[2]);
  if (std::string(argv[1]) == "save") {
    save(argv[2]);
  } else {
    load(argv[2]);
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
