// SavedModels for and from TensorFlow: saved_models check FOLDER | resave FOLDER OUT | write OUT.
// check: calls what calls.json lists, and trains; resave: loads the model and saves it again;
// write: makes models of our own, with calls.json for check_saved_models.py.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/tandem.h"

namespace td = tandem;
using Json = nlohmann::json;
using td::saved_model::Function;
using td::saved_model::Module;
using td::saved_model::Signature;
using td::saved_model::Value;

namespace {

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

td::Tensor read(const std::string& folder, const Json& file) {
  return td::Tensor(td::io::read_npy(folder + "/" + file.get<std::string>()));
}

Value value_of(const std::string& folder, const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null()) return {};
  if (json.contains("tensor")) return read(folder, json["tensor"]);
  if (json.contains("ragged")) {
    std::vector<td::Tensor> splits;
    for (std::size_t i = 1; i < json["ragged"].size(); ++i)
      splits.push_back(read(folder, json["ragged"][i]));
    return Value::ragged(read(folder, json["ragged"][0]), splits);
  }
  if (json.contains("list")) {
    std::vector<Value> items;
    for (const Json& item : json["list"]) items.push_back(value_of(folder, item));
    return Value::list(items);
  }
  std::map<std::string, Value> items;
  for (const auto& [key, item] : json.at("dict").items())
    items.emplace(key, value_of(folder, item));
  return Value::dict(items);
}

std::vector<Value> args_of(const std::string& folder, const Json& call) {
  std::vector<Value> args;
  for (const Json& arg : call.value("args", Json::array())) args.push_back(value_of(folder, arg));
  return args;
}

std::map<std::string, td::Tensor> feeds_of(const std::string& folder, const Json& call) {
  std::map<std::string, td::Tensor> feeds;
  for (const auto& [key, item] : call.at("kwargs").items())
    feeds.emplace(key, value_of(folder, item).tensor());
  return feeds;
}

void compare(const std::string& what, const td::Tensor& ours, const td::Tensor& theirs) {
  if (ours.dtype() != theirs.dtype() || !(ours.shape() == theirs.shape())) {
    fail(td::cat(what, " is ", ours.dtype(), ours.shape(), ", not ", theirs.dtype(),
                 theirs.shape()));
  }
  if (!td::is_floating(ours.dtype())) {
    if (ours.to_string() != theirs.to_string()) fail(td::cat(what, " is ", ours, ", not ", theirs));
    return;
  }
  const auto a = td::cast(ours, td::float64).to_vector<double>();
  const auto b = td::cast(theirs, td::float64).to_vector<double>();
  double largest = 1e-30, error = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(b[i]));
    error = std::max(error, std::fabs(a[i] - b[i]));
  }
  if (!(error <= 1e-4 * largest)) fail(td::cat(what, " has a relative error of ", error / largest));
}

void call(const Module& model, const std::string& folder, const Json& call) {
  if (call.contains("signature")) {
    const std::string name = call["signature"];
    const auto results = model.signature(name)(feeds_of(folder, call));
    for (const auto& [key, file] : call["results"].items())
      compare(td::cat(name, " -> ", key), results.at(key), read(folder, file));
    return;
  }
  const std::string name = call["function"];
  std::map<std::string, Value> kwargs;
  for (const auto& [key, item] : call["kwargs"].items())
    kwargs.emplace(key, value_of(folder, item));
  const Value result = model.function(name).call(args_of(folder, call), kwargs);
  const std::vector<td::Tensor> flat = result.tensors();
  if (flat.size() != call["expected"].size()) fail(td::cat(name, " returns ", result.to_string()));
  for (std::size_t i = 0; i < flat.size(); ++i)
    compare(td::cat(name, " ", i), flat[i], read(folder, call["expected"][i]));
}

// The function "serve" that Keras exported, as a layer.
void call_layer(const std::string& folder, const Json& call) {
  std::vector<td::Tensor> inputs;
  for (const Value& arg : args_of(folder, call))
    for (const td::Tensor& tensor : arg.tensors()) inputs.push_back(tensor);
  const td::keras::TFSMLayer layer(folder + "/model");
  const std::vector<td::Tensor> outputs = layer.outputs(inputs);
  if (outputs.size() != call["expected"].size())
    fail(td::cat("TFSMLayer returns ", outputs.size(), " tensors"));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    compare(td::cat("TFSMLayer ", i), outputs[i], read(folder, call["expected"][i]));
}

void train(const Module& model, const std::string& folder, const Json& how) {
  const std::vector<td::Variable> variables = model.trainable_variables();
  for (const double expected : how["losses"].get<std::vector<double>>()) {
    td::GradientTape tape;
    const td::Tensor loss =
        how.contains("signature")
            ? model.signature(how["signature"])(feeds_of(folder, how)).at(how["result"]).tensor()
            : model.function(how["function"]).call(args_of(folder, how)).tensor();
    const auto value = static_cast<double>(loss.item<float>());
    if (std::fabs(value - expected) > 1e-4 * std::fabs(expected))
      fail(td::cat("the loss is ", value, ", not ", expected));
    const auto gradients = tape.gradient(loss, variables);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (gradients[i].defined()) variables[i].assign_sub(gradients[i] * how["lr"].get<float>());
    }
  }
}

Json calls_of(const std::string& folder) {
  std::ifstream file(folder + "/calls.json");
  return Json::parse(file);
}

Module load(const std::string& folder, const Json& calls) {
  td::saved_model::LoadOptions options;
  if (calls.contains("tags")) options.tags = calls["tags"].get<std::vector<std::string>>();
  return td::saved_model::load(folder + "/model", options);
}

int check(const std::string& folder) {
  const Json calls = calls_of(folder);
  const Module model = load(folder, calls);
  const auto paths = calls.value("variables", std::vector<std::string>());
  for (const std::string& path : paths) static_cast<void>(model.variable(path));
  for (const Json& one : calls["calls"]) {
    call(model, folder, one);
    if (one.value("function", "") == "serve" && one["args"].size() == 1 &&
        (one["args"][0].contains("tensor") || one["args"][0].contains("list") ||
         one["args"][0].contains("dict")))
      call_layer(folder, one);
  }
  if (calls.contains("train")) train(model, folder, calls["train"]);
  std::cout << calls["calls"].size() << " calls\n";
  return 0;
}

int resave(const std::string& folder, const std::string& out) {
  td::saved_model::save(load(folder, calls_of(folder)), out);
  return 0;
}

// ---- Models of our own ----

class Calls {
 public:
  explicit Calls(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    description_["calls"] = Json::array();
  }
  std::string model() const { return folder_ + "/model"; }
  Json& description() { return description_; }
  std::string file(const td::Tensor& value) {
    const std::string name = td::cat("value_", count_++, ".npy");
    td::io::write_npy(folder_ + "/" + name, value.array());
    return name;
  }
  Json tensor(const td::Tensor& value) { return {{"tensor", file(value)}}; }
  void call(const std::string& function, const std::vector<Json>& args, const Value& result) {
    std::vector<std::string> files;
    for (const td::Tensor& part : result.tensors()) files.push_back(file(part));
    description_["calls"].push_back(
        {{"function", function}, {"args", args}, {"kwargs", Json::object()}, {"expected", files}});
  }
  void signature(const std::string& name, const std::map<std::string, td::Tensor>& feeds,
                 const std::map<std::string, td::Tensor>& results) {
    Json given = Json::object(), expected = Json::object();
    for (const auto& [key, value] : feeds) given[key] = tensor(value);
    for (const auto& [key, value] : results) expected[key] = file(value);
    description_["calls"].push_back(
        {{"signature", name}, {"kwargs", given}, {"results", expected}});
  }
  void write() const { std::ofstream(folder_ + "/calls.json") << description_.dump(1); }

 private:
  std::string folder_;
  Json description_;
  int count_ = 0;
};

void write_keras(const std::string& folder, const td::keras::Model& model,
                 const std::vector<td::Tensor>& inputs) {
  Calls calls(folder);
  td::saved_model::save(model, calls.model());
  const std::vector<td::Tensor> outputs = model.predict_all(td::keras::TensorList(inputs));
  std::vector<Json> args;
  for (const td::Tensor& input : inputs) args.push_back(calls.tensor(input));
  const Json given = args.size() == 1 ? args[0] : Json{{"list", args}};
  calls.call(
      "serve", {given},
      outputs.size() == 1 ? Value(outputs[0]) : Value::list({outputs.begin(), outputs.end()}));
  calls.description()["keras"] = given;
  calls.description()["keras_expected"] = calls.file(outputs[0]);
  calls.write();
}

void write_module(const std::string& folder) {
  Calls calls(folder);
  const td::Variable w(td::Tensor{1.0, 2.0, 3.0}, {.name = "w"});
  const td::Variable steps(td::Tensor(0), {.trainable = false, .name = "steps"});
  const td::Variable untracked(td::Tensor(10.f), {.name = "untracked"});
  const std::string vocabulary = folder + "/vocabulary.txt";
  std::ofstream(vocabulary) << "red\ngreen\n";
  const td::saved_model::Asset asset(vocabulary);
  const td::lookup::StaticHashTable table(td::lookup::TextFileInitializer{.filename = vocabulary},
                                          -1);
  td::lookup::MutableHashTable counts(td::string, td::int64, std::int64_t{0});
  counts.insert({"a", "b"}, td::tensor<std::int64_t>({5, 6}));

  auto f = td::function(
      [&](td::Tensor x, td::Tensor scale) {
        steps.assign_add(1);
        return std::pair(x * w * scale + untracked, td::math::reduce_sum(x));
      },
      {.name = "f", .input_shapes = {td::PartialShape({-1, 3}), td::PartialShape::scalar()}});
  auto look =
      td::function([&](td::Tensor words) { return table.lookup(words) + counts.lookup(words); },
                   {.name = "look", .input_shapes = {td::PartialShape({-1})}});
  auto text = td::function([&](td::Tensor suffix) {
    return td::strings::join({td::io::read_file(asset.path()), suffix});
  });
  auto loss =
      td::function([&](td::Tensor x) { return td::math::reduce_sum(td::math::square(x * w)); },
                   {.name = "loss", .input_shapes = {td::PartialShape({-1, 3})}});
  const td::Tensor x = td::Tensor{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, scale(2.f);
  const td::Tensor words{"green", "a", "b", "red"}, suffix("!");
  Module model, inner;
  inner.set("w", w).set("loss", Function(loss.concrete(x), {.inputs = {"x"}}));
  model.set("inner", inner)
      .set("steps", steps)
      .set("table", td::saved_model::Table(table))
      .set("counts", td::saved_model::Table(counts))
      .set("asset", asset)
      .set("answer", td::Tensor(42))
      .set("f", Function(f.concrete(x, scale), {.inputs = {"x", "scale"}, .outputs = {"y", "a"}}))
      .set("look", Function(look.concrete(words), {.inputs = {"words"}}))
      .set("text", Function(text.concrete(suffix), {.inputs = {"suffix"}}));
  td::saved_model::save(
      model, calls.model(),
      {.signatures = {{"serving_default",
                       Signature(f.concrete(x, scale),
                                 {.inputs = {"x", "a_scale"}, .outputs = {"y", "sum"}})},
                      {"look", Signature(look.concrete(words), {.inputs = {"words"}})}},
       .tags = {"serve", "mine"}});
  const auto [y, sum] = f(x, scale);
  calls.call("f", {calls.tensor(x), calls.tensor(scale)}, Value::dict({{"a", sum}, {"y", y}}));
  calls.call("look", {calls.tensor(words)}, look(words));
  calls.call("text", {calls.tensor(suffix)}, text(suffix));
  calls.signature("serving_default", {{"x", x}, {"a_scale", scale}}, {{"y", y}, {"sum", sum}});
  calls.signature("look", {{"words", words}}, {{"output_0", look(words)}});
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i) {
    td::GradientTape tape;
    const td::Tensor l = loss(x);
    losses.push_back(l.item<float>());
    w.assign_sub(tape.gradient(l, w) * 0.001f);
  }
  calls.description()["train"] = {
      {"function", "inner.loss"}, {"args", {calls.tensor(x)}}, {"lr", 0.001}, {"losses", losses}};
  calls.description()["tags"] = {"serve", "mine"};
  calls.description()["variables"] = {"inner.w", "steps"};
  calls.write();
}

// A gradient of our own, half of what follows from the body.
void write_custom_gradient(const std::string& folder) {
  Calls calls(folder);
  const td::Variable w(td::Tensor{0.5, -0.25}, {.name = "w"});
  auto loss = td::function(
      [&](td::Tensor x) {
        const td::Tensor z = td::math::reduce_sum(x * w, {1});
        const auto y = td::custom_gradient(
            [](std::span<const td::Tensor> in) {
              return std::vector<td::Tensor>{td::math::exp(in[0])};
            },
            [](std::span<const td::Tensor>, std::span<const td::Tensor> out,
               std::span<const td::Tensor> grads) {
              return std::vector<td::Tensor>{grads[0] * out[0] * 0.5f};
            },
            {z});
        return td::math::reduce_sum(y[0]);
      },
      {.name = "loss", .input_shapes = {td::PartialShape({-1, 2})}});
  const td::Tensor x{{1.0, 2.0}, {-1.0, 0.5}};
  Module model;
  model.set("w", w).set("loss", Function(loss.concrete(x), {.inputs = {"x"}}));
  td::saved_model::save(model, calls.model());
  calls.call("loss", {calls.tensor(x)}, loss(x));
  std::vector<float> losses;
  for (int i = 0; i < 3; ++i) {
    td::GradientTape tape;
    const td::Tensor l = loss(x);
    losses.push_back(l.item<float>());
    w.assign_sub(tape.gradient(l, w) * 0.1f);
  }
  calls.description()["train"] = {
      {"function", "loss"}, {"args", {calls.tensor(x)}}, {"lr", 0.1}, {"losses", losses}};
  calls.write();
}

td::Tensor numbers(const td::Shape& shape, float step = 0.37f) {
  std::vector<float> values(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(step * static_cast<float>(i));
  return td::Tensor::from(values, shape);
}

int write(const std::string& out) {
  namespace k = td::keras;
  td::random::set_seed(3);
  write_module(out + "/our_module");
  write_custom_gradient(out + "/our_custom_gradient");
  write_keras(out + "/our_dense",
              k::Sequential{k::Input({4}), k::Dense(5, {.activation = "relu"}), k::Dense(2)},
              {numbers({3, 4})});
  write_keras(out + "/our_cnn",
              k::Sequential{k::Input({10, 10, 3}), k::Conv2D(4, 3, {.activation = "relu"}),
                            k::BatchNormalization(), k::MaxPooling2D(), k::Flatten(), k::Dense(3)},
              {numbers({2, 10, 10, 3})});
  write_keras(out + "/our_lstm", k::Sequential{k::Input({6, 4}), k::LSTM(5), k::Dense(2)},
              {numbers({2, 6, 4})});
  const auto a = k::Input({4}, {.name = "a"}), b = k::Input({3}, {.name = "b"});
  const auto y = k::Dense(2)(a), z = k::Dense(2)(k::Concatenate()({a, b}));
  write_keras(out + "/our_several", k::Model({a, b}, {y, z}), {numbers({2, 4}), numbers({2, 3})});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "check" && argc == 3) return check(argv[2]);
    if (what == "resave" && argc == 4) return resave(argv[2], argv[3]);
    if (what == "write" && argc == 3) return write(argv[2]);
    std::cerr << "saved_models check FOLDER | resave FOLDER OUT | write OUT\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
