#include "tandem/fs/stores/internal/s3_answers.h"

#include <charconv>
#include <sstream>

#include <pugixml.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/stores/internal/environment.h"

namespace tandem::fs {
namespace {

[[noreturn]] void nonsense(const std::string& path, const std::string& why) {
  throw DataLossError(cat(path, "; The store's answer cannot be understood: ", why));
}

// Parsers recurse; what S3 answers is flat.
void check_depth(std::string_view xml, const std::string& path) {
  constexpr int kMaxDepth = 32;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < xml.size(); ++i) {
    if (xml[i] != '<') continue;
    if (xml[i + 1] == '/') {
      --depth;
    } else if (xml[i + 1] != '?' && xml[i + 1] != '!') {
      const std::size_t end = xml.find('>', i);
      if (end == std::string_view::npos || xml[end - 1] != '/') ++depth;
    }
    if (depth > kMaxDepth) nonsense(path, "its elements are nested too deep");
  }
}

// The root element of a document, which must be called `name`; "{namespace}name" in S3's words.
pugi::xml_node parse(pugi::xml_document& document, std::string_view xml, const char* name,
                     const std::string& path) {
  check_depth(xml, path);
  const pugi::xml_parse_result result =
      document.load_buffer(xml.data(), xml.size(),
                           pugi::parse_default | pugi::parse_ws_pcdata_single, pugi::encoding_utf8);
  if (!result) nonsense(path, cat("at byte ", result.offset, ": ", result.description()));
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != name) {
    nonsense(path,
             cat("it is <", std::string_view(root.name()).substr(0, 60), ">, not <", name, ">"));
  }
  return root;
}

std::string text_of(pugi::xml_node node, const char* name) { return node.child_value(name); }

std::string required(pugi::xml_node node, const char* name, const std::string& path) {
  std::string text = text_of(node, name);
  if (text.empty()) nonsense(path, cat("it has no <", name, ">"));
  return text;
}

// Keys come encoded, because XML cannot hold all that a key may.
std::string url_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto [end, error] =
          std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      if (error == std::errc() && end == text.data() + i + 3) {
        out += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    out += text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

}  // namespace

ObjectPage parse_object_page(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  const pugi::xml_node root = parse(document, xml, "ListBucketResult", path);
  const bool encoded = text_of(root, "EncodingType") == "url";
  const auto key_of = [&](std::string text) { return encoded ? url_decode(text) : text; };
  ObjectPage page;
  for (const pugi::xml_node item : root.children("Contents")) {
    const std::string size = required(item, "Size", path);
    ObjectPage::Item object{key_of(required(item, "Key", path))};
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), object.size);
    if (error != std::errc() || end != size.data() + size.size()) {
      nonsense(path, cat("the size of an object is '", size.substr(0, 60), "'"));
    }
    page.objects.push_back(std::move(object));
  }
  for (const pugi::xml_node item : root.children("CommonPrefixes")) {
    page.prefixes.push_back(key_of(required(item, "Prefix", path)));
  }
  if (text_of(root, "IsTruncated") == "true") {
    page.next = required(root, "NextContinuationToken", path);
  }
  return page;
}

std::vector<std::string> parse_buckets(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  const pugi::xml_node root = parse(document, xml, "ListAllMyBucketsResult", path);
  std::vector<std::string> names;
  for (const pugi::xml_node bucket : root.child("Buckets").children("Bucket")) {
    names.push_back(required(bucket, "Name", path));
  }
  return names;
}

std::string parse_upload_id(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  return required(parse(document, xml, "InitiateMultipartUploadResult", path), "UploadId", path);
}

std::string parse_copy_etag(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  const bool part = xml.find("<CopyPartResult") != std::string_view::npos;
  return required(parse(document, xml, part ? "CopyPartResult" : "CopyObjectResult", path), "ETag",
                  path);
}

AwsCredentials parse_sts_credentials(std::string_view xml, const std::string& path) {
  pugi::xml_document document;
  const pugi::xml_node found = parse(document, xml, "AssumeRoleWithWebIdentityResponse", path)
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  return {required(found, "AccessKeyId", path), required(found, "SecretAccessKey", path),
          text_of(found, "SessionToken"),
          static_cast<std::time_t>(parse_time(text_of(found, "Expiration")))};
}

Failure parse_s3_error(std::string_view xml) {
  Failure failure;
  try {
    pugi::xml_document document;
    // STS wraps its errors.
    const bool wrapped = xml.find("<ErrorResponse") != std::string_view::npos;
    pugi::xml_node root = parse(document, xml, wrapped ? "ErrorResponse" : "Error", "");
    if (wrapped) root = root.child("Error");
    failure.code = text_of(root, "Code");
    failure.message = text_of(root, "Message");
  } catch (const Error&) {
    return {};  // a proxy's page, or nothing
  }
  failure.retriable = failure.code == "RequestTimeout" || failure.code == "SlowDown" ||
                      failure.code == "InternalError" || failure.code == "ServiceUnavailable" ||
                      failure.code == "Throttling" || failure.code == "ExpiredToken" ||
                      failure.code == "BadDigest" || failure.code == "XAmzContentSHA256Mismatch";
  return failure;
}

std::string complete_upload_xml(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  root.append_attribute("xmlns") = "http://s3.amazonaws.com/doc/2006-03-01/";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text() = static_cast<unsigned>(i + 1);
    part.append_child("ETag").text() = etags[i].c_str();
  }
  std::ostringstream out;
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration);
  return out.str();
}

}  // namespace tandem::fs
