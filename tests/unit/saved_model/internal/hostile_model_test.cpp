// SavedModels that contradict themselves, or that reach out of their folder.

#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/traced_function.h"
#include "tandem/saved_model/saved_model.h"

#include "tests/unit/folder.h"

namespace tandem::saved_model {
namespace {

using io::proto::SavedObject;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class E>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

class HostileModel : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::write_file(folder_.file("words.txt"), "a\nb\n");
    const Asset asset(folder_.file("words.txt"));
    const Variable w(Tensor{1.0, 2.0}, {.name = "w"});
    auto f = function([&](Tensor x) { return x * w; });
    Module part;
    part.set("w", w);
    Module model;
    model.set("part", part)
        .set("asset", asset)
        .set("f", Function(f.concrete(Tensor{1.0, 1.0}), {.inputs = {"x"}}));
    save(model, path());
  }
  std::string path() const { return folder_.file("model"); }

  void change(const std::function<void(io::proto::MetaGraphDef&)>& how) const {
    io::proto::SavedModel model;
    io::proto::WireReader(fs::read_file(path() + "/saved_model.pb")).read(model);
    how(model.meta_graphs.at(0));
    fs::write_file(path() + "/saved_model.pb", io::proto::WireWriter::write(model));
  }
  template <class E>
  std::string load_error() const {
    return error_of<E>([&] { load(path()); });
  }
  static SavedObject* find(io::proto::MetaGraphDef& meta, SavedObject::Case kind) {
    for (SavedObject& node : meta.object_graph_def.make().nodes) {
      if (node.which_kind == kind) return &node;
    }
    return nullptr;
  }

  Folder folder_;
};

TEST_F(HostileModel, AssetsStayInTheirFolder) {
  for (const char* name : {"../../words.txt", "/etc/passwd", "", "a/../../../words.txt"}) {
    change([&](auto& meta) { meta.asset_file_def.at(0).filename = name; });
    EXPECT_THAT(load_error<InvalidArgumentError>(),
                AllOf(HasSubstr(path()), HasSubstr("which is not in its folder 'assets'")));
  }
}

TEST_F(HostileModel, LinksOutOfTheFolderAreNotFollowed) {
  const std::string asset = path() + "/assets/words.txt";
  std::filesystem::remove(asset);
  std::filesystem::create_symlink(folder_.file("words.txt"), asset);
  EXPECT_THAT(load_error<InvalidArgumentError>(),
              AllOf(HasSubstr(asset), HasSubstr("leads out of the model's folder")));
  EXPECT_NO_THROW(load(path(), {.follow_links_out = true}));
  std::filesystem::remove(asset);
  EXPECT_THAT(load_error<NotFoundError>(), HasSubstr(asset));
  fs::write_file(path() + "/assets/target", "a\n");
  std::filesystem::create_symlink("target", asset);
  EXPECT_NO_THROW(load(path()));
  std::filesystem::rename(path() + "/variables", folder_.file("variables"));
  std::filesystem::create_symlink(folder_.file("variables"), path() + "/variables");
  EXPECT_THAT(load_error<InvalidArgumentError>(), HasSubstr("leads out of the model's folder"));
}

TEST_F(HostileModel, ObjectsMayLeadBackToTheirHolders) {
  change([](auto& meta) {
    auto& nodes = meta.object_graph_def.make().nodes;
    auto& back =
        nodes[static_cast<std::size_t>(nodes[0].children.at(0).node_id)].children.emplace_back();
    back.node_id = 0;
    back.local_name = "parent";
  });
  const Module model = load(path());
  EXPECT_EQ(model.variable("part.parent.part.w").name(), "w");
  EXPECT_EQ(model.variables().size(), 1u);
  save(model, folder_.file("again"));
  EXPECT_EQ(load(folder_.file("again")).variable("part.parent.part.w").name(), "w");
}

TEST_F(HostileModel, ReferencesOutOfTheObjectGraph) {
  change([](auto& meta) { meta.object_graph_def.make().nodes[0].children.at(0).node_id = 1000; });
  EXPECT_THAT(load_error<InvalidArgumentError>(),
              AllOf(HasSubstr(path()), HasSubstr("object 1000")));
  change([](auto& meta) { meta.object_graph_def.make().nodes[0].children.at(0).node_id = -1; });
  EXPECT_THAT(load_error<InvalidArgumentError>(), HasSubstr("object -1"));
}

TEST_F(HostileModel, FunctionsThatAreNotThere) {
  change([](auto& meta) {
    find(meta, SavedObject::Case::kFunction)->function.make().concrete_functions.at(0) = "nothing";
  });
  EXPECT_THAT(load_error<InvalidArgumentError>(), AllOf(HasSubstr(path()), HasSubstr("'nothing'")));
}

TEST_F(HostileModel, CapturesThatDoNotFit) {
  change([](auto& meta) {
    for (auto& [name, function] : meta.object_graph_def.make().concrete_functions)
      function.bound_inputs = {1 << 30};
  });
  EXPECT_THAT(error_of<InvalidArgumentError>([&] {
                load(path()).function("f")(Tensor{1.0, 1.0});
              }),
              HasSubstr("captured object"));
  change([](auto& meta) {
    for (auto& [name, function] : meta.object_graph_def.make().concrete_functions)
      function.bound_inputs.clear();
  });
  EXPECT_THAT(error_of<InvalidArgumentError>([&] {
                load(path()).function("f")(Tensor{1.0, 1.0});
              }),
              AllOf(HasSubstr(path()), HasSubstr("its signature is")));
}

TEST_F(HostileModel, VariablesThatDoNotFit) {
  change([](auto& meta) {
    find(meta, SavedObject::Case::kVariable)->variable.make().shape.make().dim.at(0).size = 7;
  });
  EXPECT_THAT(load_error<InvalidArgumentError>(),
              AllOf(HasSubstr("Variable 'w'"), HasSubstr(path()), HasSubstr("float[7]")));
  std::filesystem::remove_all(path() + "/variables");
  EXPECT_THAT(load_error<NotFoundError>(), HasSubstr("the folder has no variables"));
}

TEST_F(HostileModel, DamagedFilesAreNamed) {
  const std::string file = path() + "/saved_model.pb";
  const std::string whole = fs::read_file(file);
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    fs::write_file(file, whole.substr(0, size));
    try {
      load(path());
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path()));
    }
  }
  fs::write_file(file, whole);
  const std::string index = path() + "/variables/variables.index";
  fs::write_file(index, fs::read_file(index).substr(0, 40));
  EXPECT_THAT(load_error<DataLossError>(), HasSubstr(path()));
}

}  // namespace
}  // namespace tandem::saved_model
