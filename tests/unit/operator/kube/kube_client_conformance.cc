// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/kube/kube_client_conformance.h"

#include <gmock/gmock.h>

#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

// How long an event may take. Most come at once; the garbage collector of a real control plane
// looks for new types every 30 s, and before that an owner's child stays.
constexpr Duration kEventTimeout = std::chrono::seconds(90);

ObjectName Named(const std::string& name) { return {"default", name}; }

std::string VersionOf(const Json& object) { return MetadataText(object, "resourceVersion"); }
int64_t GenerationOf(const Json& object) { return object.at("metadata").at("generation"); }

// The next event that is no bookmark.
WatchEvent NextEvent(Watch& watch) {
  for (;;) {
    auto event = watch.Next(kEventTimeout);
    EXPECT_TRUE(event.ok()) << event.status().ToString();
    if (!event.ok()) return {WatchEvent::Kind::kError, {}};
    if (event->kind != WatchEvent::Kind::kBookmark) return *event;
  }
}

}  // namespace

const ResourceType& WidgetType() {
  static const ResourceType kType{"test.lambdadnn.io", "v1", "widgets", "Widget"};
  return kType;
}

Json ConformanceCrd() {
  return Json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.lambdadnn.io"},
    "spec": {"group": "test.lambdadnn.io", "scope": "Namespaced",
      "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
      "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
          "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "tags": {"type": "array", "maxItems": 3, "items": {"type": "string"}}}},
          "status": {"type": "object", "properties": {
            "phase": {"type": "string"}, "ready": {"type": "integer"}}}}}}}]}})");
}

Json MakeWidget(const std::string& name, const std::string& namespace_name) {
  return {{"apiVersion", "test.lambdadnn.io/v1"},
          {"kind", "Widget"},
          {"metadata", {{"name", name}, {"namespace", namespace_name}}},
          {"spec", {{"colour", "red"}}}};
}

TEST_P(KubeClientConformance, CreateFillsInWhatTheServerOwnsAndDefaults) {
  const auto created = client().Create(WidgetType(), MakeWidget("a"));
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  EXPECT_FALSE(MetadataText(*created, "uid").empty());
  EXPECT_FALSE(MetadataText(*created, "creationTimestamp").empty());
  EXPECT_FALSE(VersionOf(*created).empty());
  EXPECT_EQ(GenerationOf(*created), 1);
  EXPECT_EQ(created->at("spec").at("size"), 3);
  const auto read = client().Get(WidgetType(), Named("a"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at("spec"), created->at("spec"));
  EXPECT_EQ(VersionOf(*read), VersionOf(*created));
}

TEST_P(KubeClientConformance, CreateTwiceIsAlreadyExistsAndChangesNothing) {
  const auto first = client().Create(WidgetType(), MakeWidget("a"));
  EXPECT_EQ(client().Create(WidgetType(), MakeWidget("a")).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(VersionOf(*client().Get(WidgetType(), Named("a"))), VersionOf(*first));
}

TEST_P(KubeClientConformance, CreateWithGenerateNameMakesNames) {
  Json widget = MakeWidget("");
  widget["metadata"].erase("name");
  widget["metadata"]["generateName"] = "w-";
  const auto first = client().Create(WidgetType(), widget);
  const auto second = client().Create(WidgetType(), widget);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_THAT(NameOf(*first).name, ::testing::StartsWith("w-"));
  EXPECT_NE(NameOf(*first).name, NameOf(*second).name);
}

TEST_P(KubeClientConformance, CreateIgnoresStatus) {
  Json widget = MakeWidget("a");
  widget["status"] = {{"phase", "Done"}};
  EXPECT_FALSE(client().Create(WidgetType(), widget)->contains("status"));
}

TEST_P(KubeClientConformance, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(client().Get(WidgetType(), Named("x")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(client().Delete(WidgetType(), Named("x"), "").code(), StatusCode::kNotFound);
  EXPECT_EQ(client()
                .Patch(WidgetType(), Named("x"), {{"spec", {{"size", 4}}}}, Subresource::kNone)
                .status()
                .code(),
            StatusCode::kNotFound);
  Json widget = MakeWidget("x");
  widget["metadata"]["resourceVersion"] = "1";
  EXPECT_EQ(client().Update(WidgetType(), widget, Subresource::kNone).status().code(),
            StatusCode::kNotFound);
}

TEST_P(KubeClientConformance, BadObjectsAreRefusedWithEveryCauseAndNothingIsStored) {
  Json widget = MakeWidget("a");
  widget["spec"] = {{"size", 11}, {"colour", "blue"}, {"tags", {"x", 2}}};
  const Status refused = client().Create(WidgetType(), widget).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  for (const char* path : {"spec.size", "spec.colour", "spec.tags[1]"}) {
    EXPECT_THAT(refused.message(), HasSubstr(path));
  }
  // A server may check unknown fields before anything else.
  widget["spec"]["wieght"] = 1;
  const Status unknown = client().Create(WidgetType(), widget).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.message(), HasSubstr("spec.wieght"));
  EXPECT_EQ(client().Get(WidgetType(), Named("a")).status().code(), StatusCode::kNotFound);
  for (const char* name : {"", "A", "a_b", "-a", "a-", "a..b"}) {
    EXPECT_EQ(client().Create(WidgetType(), MakeWidget(name)).status().code(),
              StatusCode::kInvalidArgument)
        << name;
  }
}

TEST_P(KubeClientConformance, UpdateNeedsTheCurrentVersion) {
  Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  const Json stale = widget;
  widget["spec"]["size"] = 5;
  const auto updated = client().Update(WidgetType(), widget, Subresource::kNone);
  ASSERT_TRUE(updated.ok()) << updated.status().ToString();
  EXPECT_NE(VersionOf(*updated), VersionOf(stale));
  EXPECT_EQ(client().Update(WidgetType(), stale, Subresource::kNone).status().code(),
            StatusCode::kAborted);
  Json unversioned = *updated;
  unversioned["metadata"].erase("resourceVersion");
  EXPECT_EQ(client().Update(WidgetType(), unversioned, Subresource::kNone).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(client().Get(WidgetType(), Named("a"))->at("spec").at("size"), 5);
}

TEST_P(KubeClientConformance, GenerationCountsChangesOfSpecAlone) {
  Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  widget["metadata"]["labels"] = {{"app", "x"}};
  widget = *client().Update(WidgetType(), widget, Subresource::kNone);
  EXPECT_EQ(GenerationOf(widget), 1);
  widget = *client().Patch(WidgetType(), Named("a"), {{"status", {{"phase", "Up"}}}},
                           Subresource::kStatus);
  EXPECT_EQ(GenerationOf(widget), 1);
  widget = *client().Patch(WidgetType(), Named("a"), {{"spec", {{"size", 4}}}}, Subresource::kNone);
  EXPECT_EQ(GenerationOf(widget), 2);
}

TEST_P(KubeClientConformance, AWriteThatChangesNothingKeepsTheVersion) {
  const Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  const auto same = client().Update(WidgetType(), widget, Subresource::kNone);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(VersionOf(*same), VersionOf(widget));
  const auto patched =
      client().Patch(WidgetType(), Named("a"), {{"spec", {{"colour", "red"}}}}, Subresource::kNone);
  EXPECT_EQ(VersionOf(*patched), VersionOf(widget));
}

TEST_P(KubeClientConformance, StatusAndSpecAreWrittenApart) {
  Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  widget["spec"]["size"] = 7;
  widget["status"] = {{"phase", "Up"}};
  widget = *client().Update(WidgetType(), widget, Subresource::kStatus);
  EXPECT_EQ(widget.at("spec").at("size"), 3);
  EXPECT_EQ(widget.at("status").at("phase"), "Up");
  widget["spec"]["size"] = 7;
  widget["status"] = {{"phase", "Down"}};
  widget = *client().Update(WidgetType(), widget, Subresource::kNone);
  EXPECT_EQ(widget.at("spec").at("size"), 7);
  EXPECT_EQ(widget.at("status").at("phase"), "Up");
  EXPECT_EQ(
      client()
          .Patch(WidgetType(), Named("a"), {{"status", {{"ready", "many"}}}}, Subresource::kStatus)
          .status()
          .code(),
      StatusCode::kInvalidArgument);
}

TEST_P(KubeClientConformance, MergePatchSetsRemovesAndReplacesLists) {
  Json widget = MakeWidget("a");
  widget["spec"]["tags"] = {"x", "y"};
  ASSERT_TRUE(client().Create(WidgetType(), widget).ok());
  const auto patched =
      client().Patch(WidgetType(), Named("a"), {{"spec", {{"tags", {"z"}}, {"colour", nullptr}}}},
                     Subresource::kNone);
  ASSERT_TRUE(patched.ok()) << patched.status().ToString();
  EXPECT_EQ(patched->at("spec"), (Json{{"size", 3}, {"tags", {"z"}}}));
}

TEST_P(KubeClientConformance, APatchWithAVersionIsAPrecondition) {
  const Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  const Json patch = {{"metadata", {{"resourceVersion", VersionOf(widget)}}},
                      {"status", {{"phase", "Up"}}}};
  EXPECT_TRUE(client().Patch(WidgetType(), Named("a"), patch, Subresource::kStatus).ok());
  Json late = patch;
  late["status"]["phase"] = "Down";
  EXPECT_EQ(client().Patch(WidgetType(), Named("a"), late, Subresource::kStatus).status().code(),
            StatusCode::kAborted);
  EXPECT_EQ(client().Get(WidgetType(), Named("a"))->at("status").at("phase"), "Up");
}

TEST_P(KubeClientConformance, ServerFieldsCannotBeWritten) {
  const Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  Json changed = widget;
  changed["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z";
  changed["metadata"]["generation"] = 99;
  changed["metadata"]["labels"] = {{"app", "x"}};
  const auto updated = client().Update(WidgetType(), changed, Subresource::kNone);
  ASSERT_TRUE(updated.ok()) << updated.status().ToString();
  EXPECT_EQ(MetadataText(*updated, "creationTimestamp"), MetadataText(widget, "creationTimestamp"));
  EXPECT_EQ(GenerationOf(*updated), 1);
  changed = *updated;
  changed["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(client().Update(WidgetType(), changed, Subresource::kNone).status().code(),
            StatusCode::kAborted);
}

TEST_P(KubeClientConformance, DeleteWithAnotherUidIsAConflict) {
  const Json widget = *client().Create(WidgetType(), MakeWidget("a"));
  EXPECT_EQ(client().Delete(WidgetType(), Named("a"), "no-such-uid").code(), StatusCode::kAborted);
  EXPECT_TRUE(client().Delete(WidgetType(), Named("a"), MetadataText(widget, "uid")).ok());
  EXPECT_EQ(client().Get(WidgetType(), Named("a")).status().code(), StatusCode::kNotFound);
}

TEST_P(KubeClientConformance, AFinalizerHoldsADeletedObjectUntilItIsRemoved) {
  Json widget = MakeWidget("a");
  widget["metadata"]["finalizers"] = {"lambdadnn.io/cleanup"};
  ASSERT_TRUE(client().Create(WidgetType(), widget).ok());
  ASSERT_TRUE(client().Delete(WidgetType(), Named("a"), "").ok());
  auto held = client().Get(WidgetType(), Named("a"));
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(IsBeingDeleted(*held));
  ASSERT_TRUE(client().Delete(WidgetType(), Named("a"), "").ok());  // again: nothing new
  EXPECT_EQ(VersionOf(*client().Get(WidgetType(), Named("a"))), VersionOf(*held));
  Json more = *held;
  more["metadata"]["finalizers"].push_back("lambdadnn.io/late");
  EXPECT_EQ(client().Update(WidgetType(), more, Subresource::kNone).status().code(),
            StatusCode::kInvalidArgument);
  ASSERT_TRUE(client()
                  .Patch(WidgetType(), Named("a"), {{"metadata", {{"finalizers", nullptr}}}},
                         Subresource::kNone)
                  .ok());
  EXPECT_EQ(client().Get(WidgetType(), Named("a")).status().code(), StatusCode::kNotFound);
}

TEST_P(KubeClientConformance, AChildGoesWhenItsLastOwnerHasGone) {
  const Json first = *client().Create(WidgetType(), MakeWidget("first"));
  const Json second = *client().Create(WidgetType(), MakeWidget("second"));
  Json child = MakeWidget("child");
  for (const Json* owner : {&first, &second}) {
    child["metadata"]["ownerReferences"].push_back({{"apiVersion", "test.lambdadnn.io/v1"},
                                                    {"kind", "Widget"},
                                                    {"name", NameOf(*owner).name},
                                                    {"uid", MetadataText(*owner, "uid")}});
  }
  ASSERT_TRUE(client().Create(WidgetType(), child).ok());
  const auto list = client().List(WidgetType(), "", "", 0, "");
  const auto watch = client().StartWatch(WidgetType(), "", "", list->resource_version);
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(client().Delete(WidgetType(), Named("first"), "").ok());
  EXPECT_TRUE(client().Get(WidgetType(), Named("child")).ok());
  ASSERT_TRUE(client().Delete(WidgetType(), Named("second"), "").ok());
  for (;;) {  // the collector takes its time
    const WatchEvent event = NextEvent(**watch);
    ASSERT_NE(event.kind, WatchEvent::Kind::kError);
    if (event.kind == WatchEvent::Kind::kDeleted && NameOf(event.object).name == "child") break;
  }
  EXPECT_EQ(client().Get(WidgetType(), Named("child")).status().code(), StatusCode::kNotFound);
}

TEST_P(KubeClientConformance, ListSelectsByNamespaceAndLabelsInOrderOfName) {
  for (const char* name : {"c", "a", "b"}) {
    Json widget = MakeWidget(name);
    widget["metadata"]["labels"] = {{"app", name == std::string("b") ? "y" : "x"}};
    ASSERT_TRUE(client().Create(WidgetType(), widget).ok());
  }
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("z", "kube-public")).ok());
  const auto all = client().List(WidgetType(), "", "", 0, "");
  EXPECT_EQ(all->items.size(), 4u);
  const auto selected = client().List(WidgetType(), "default", "app=x", 0, "");
  ASSERT_EQ(selected->items.size(), 2u);
  EXPECT_EQ(NameOf(selected->items[0]).name, "a");
  EXPECT_EQ(NameOf(selected->items[1]).name, "c");
  EXPECT_EQ(client().List(WidgetType(), "", "app=(", 0, "").status().code(),
            StatusCode::kInvalidArgument);
}

TEST_P(KubeClientConformance, PagesShowOneMomentOfTheList) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(client().Create(WidgetType(), MakeWidget(name)).ok());
  }
  std::vector<std::string> names;
  auto page = client().List(WidgetType(), "", "", 2, "");
  const std::string version = page->resource_version;
  ASSERT_TRUE(client().Delete(WidgetType(), Named("d"), "").ok());
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("cc")).ok());
  for (;;) {
    ASSERT_TRUE(page.ok()) << page.status().ToString();
    EXPECT_EQ(page->resource_version, version);
    for (const Json& item : page->items) names.push_back(NameOf(item).name);
    if (page->continue_token.empty()) break;
    page = client().List(WidgetType(), "", "", 2, page->continue_token);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
}

TEST_P(KubeClientConformance, WatchGoesOnWhereTheListWas) {
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("a")).ok());
  const auto list = client().List(WidgetType(), "", "", 0, "");
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("b")).ok());
  ASSERT_TRUE(
      client().Patch(WidgetType(), Named("a"), {{"spec", {{"size", 4}}}}, Subresource::kNone).ok());
  ASSERT_TRUE(client().Delete(WidgetType(), Named("b"), "").ok());
  const auto watch = client().StartWatch(WidgetType(), "", "", list->resource_version);
  ASSERT_TRUE(watch.ok()) << watch.status().ToString();
  WatchEvent event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kAdded);
  EXPECT_EQ(NameOf(event.object).name, "b");
  event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kModified);
  EXPECT_EQ(event.object.at("spec").at("size"), 4);
  const std::string version = VersionOf(event.object);
  event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kDeleted);
  EXPECT_NE(VersionOf(event.object), version) << "a deletion has a version of its own";
}

TEST_P(KubeClientConformance, WatchBySelectorFollowsWhatBeginsAndCeasesToMatch) {
  const auto labelled = [](const std::string& name, const std::string& value) {
    Json widget = MakeWidget(name);
    widget["metadata"]["labels"] = {{"app", value}};
    return widget;
  };
  const auto relabel = [&](const std::string& name, const std::string& value) {
    const Json patch = {{"metadata", {{"labels", {{"app", value}}}}}};
    const ObjectName of{"default", name};
    ASSERT_TRUE(client().Patch(WidgetType(), of, patch, Subresource::kNone).ok());
  };
  ASSERT_TRUE(client().Create(WidgetType(), labelled("mine", "x")).ok());
  ASSERT_TRUE(client().Create(WidgetType(), labelled("other", "y")).ok());
  const auto list = client().List(WidgetType(), "", "app=x", 0, "");
  ASSERT_TRUE(list.ok());
  const auto watch = client().StartWatch(WidgetType(), "", "app=x", list->resource_version);
  ASSERT_TRUE(client().Create(WidgetType(), labelled("unseen", "y")).ok());
  relabel("other", "x");
  WatchEvent event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kAdded);
  EXPECT_EQ(NameOf(event.object).name, "other");
  relabel("mine", "y");
  event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kDeleted);
  EXPECT_EQ(NameOf(event.object).name, "mine");
  ASSERT_TRUE(client().Delete(WidgetType(), {"default", "unseen"}, "").ok());
  ASSERT_TRUE(client().Delete(WidgetType(), {"default", "other"}, "").ok());
  event = NextEvent(**watch);
  EXPECT_EQ(event.kind, WatchEvent::Kind::kDeleted);
  EXPECT_EQ(NameOf(event.object).name, "other");
}

TEST_P(KubeClientConformance, WatchFromNothingBeginsWithWhatIsThere) {
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("a")).ok());
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("b", "kube-public")).ok());
  const auto watch = client().StartWatch(WidgetType(), "default", "", "");
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("c", "kube-public")).ok());
  ASSERT_TRUE(client().Create(WidgetType(), MakeWidget("d")).ok());
  EXPECT_EQ(NameOf(NextEvent(**watch).object).name, "a");
  EXPECT_EQ(NameOf(NextEvent(**watch).object).name, "d");
  Result<WatchEvent> more = (*watch)->Next(std::chrono::milliseconds(20));
  while (more.ok() && more->kind == WatchEvent::Kind::kBookmark) {
    more = (*watch)->Next(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(more.status().code(), StatusCode::kDeadlineExceeded);
}

}  // namespace lambdadnn
