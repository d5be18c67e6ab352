#include "tandem/fs/file_view.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"

#include "tests/unit/folder.h"

namespace tandem::fs {
namespace {

std::string numbered_pages() {
  std::string bytes;
  for (int i = 0; i < 20'000; ++i) bytes += std::to_string(i);
  return bytes;
}

TEST(FileView, HasTheBytesOfALocalFile) {
  const Folder folder;
  const std::string bytes = numbered_pages();
  write_file(folder.file("data"), bytes);
  const FileView view(folder.file("data"));
  if (view.bytes(0, 1).empty())
    GTEST_SKIP() << "this system cannot fetch pages (before Linux 5.14)";
  EXPECT_EQ(view.bytes(0, bytes.size()), bytes);
  const std::string_view middle = view.bytes(4097, 9000);
  EXPECT_EQ(middle, bytes.substr(4097, 9000));
  view.release(middle);
  EXPECT_EQ(view.bytes(4097, 9000), bytes.substr(4097, 9000));
  EXPECT_EQ(FileView("file://" + folder.file("data")).bytes(5, 5), bytes.substr(5, 5));
}

TEST(FileView, IsEmptyWhereThereIsNothingToSee) {
  const Folder folder;
  const std::string bytes = numbered_pages();
  write_file(folder.file("data"), bytes);
  const FileView view(folder.file("data"));
  EXPECT_TRUE(view.bytes(bytes.size() - 1, 2).empty());
  EXPECT_TRUE(view.bytes(~std::uint64_t{0}, 2).empty());
  // Reading what is gone would send a signal.
  std::filesystem::resize_file(folder.file("data"), 5000);
  EXPECT_TRUE(view.bytes(60'000, 10'000).empty());
  EXPECT_TRUE(FileView(folder.file("missing")).bytes(0, 1).empty());
  write_file("ram://file_view/data", bytes);
  EXPECT_TRUE(FileView("ram://file_view/data").bytes(0, 1).empty());
}

}  // namespace
}  // namespace tandem::fs
