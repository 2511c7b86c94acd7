#!/usr/bin/python3
"""The parts of a desktop that the app speaks to over D-Bus: a tray (StatusNotifierWatcher) and a notification service.

Needs the system's Python with dbus and gi. With --no-tray the tray is left out at first. With --look there is neither: it looks
at the tray that a real desktop has. Takes one order a line on stdin and answers each with one line of JSON:
  menu               the tray's menu: [{"id", "label", "enabled"}]
  click LABEL        clicks the item whose label starts so: true or false
  icon               the tray icon's name and where it lies
  notifications      what was notified: [{"summary", "body", "actions"}]
  act KEY            invokes an action of the last notification
  activate           what a click on the icon itself gives, as KDE makes it: true, or {"error"}
  watch, unwatch     the tray comes or goes: true
  host yes, host no  the panel behind the tray comes or goes: true
  tray               what the tray on the bus says about itself: {"host", "items"}, or {"error"} when there is none
  popup, popdown     opens the menu in a window titled "Tray", for a picture, and closes it: true
"""

import json
import pathlib
import sys
import time

import dbus
import dbus.service
import gi
from dbus.mainloop.glib import DBusGMainLoop

gi.require_version("Gtk", "3.0")
gi.require_version("GdkPixbuf", "2.0")
from gi.repository import GdkPixbuf, GLib, Gtk  # noqa: E402

WATCHER, NOTIFICATIONS = "org.kde.StatusNotifierWatcher", "org.freedesktop.Notifications"
PROPERTIES, MENU = "org.freedesktop.DBus.Properties", "com.canonical.dbusmenu"


class Watcher(dbus.service.Object):
    """Where tray icons register."""

    def __init__(self, bus):
        super().__init__(bus, "/StatusNotifierWatcher")
        self.bus, self.item, self.host = bus, None, True

    @dbus.service.method(WATCHER, in_signature="s", sender_keyword="sender")
    def RegisterStatusNotifierItem(self, service, sender=None):
        self.item = (sender, service) if service.startswith("/") else (service, "/StatusNotifierItem")

    @dbus.service.method(WATCHER, in_signature="s")
    def RegisterStatusNotifierHost(self, service):
        pass

    @dbus.service.method(PROPERTIES, in_signature="ss", out_signature="v")
    def Get(self, _interface, name):
        return self.GetAll(_interface)[name]

    @dbus.service.method(PROPERTIES, in_signature="s", out_signature="a{sv}")
    def GetAll(self, _interface):
        items = ["".join(self.item)] if self.item else []
        return {
            "IsStatusNotifierHostRegistered": self.host,
            "ProtocolVersion": dbus.Int32(0),
            "RegisteredStatusNotifierItems": dbus.Array(items, signature="s"),
        }

    @dbus.service.signal(WATCHER, signature="")
    def StatusNotifierHostRegistered(self):
        pass

    @dbus.service.signal(WATCHER, signature="")
    def StatusNotifierHostUnregistered(self):
        pass

    def set_host(self, there):
        """A panel comes or goes; the watcher stays."""
        self.host = there
        self.StatusNotifierHostRegistered() if there else self.StatusNotifierHostUnregistered()

    def activate(self):
        """A click with the left button (StatusNotifierItem, `Activate`)."""
        dbus.Interface(self.bus.get_object(*self.item), "org.kde.StatusNotifierItem").Activate(0, 0)

    def properties(self):
        """What the icon says about itself."""
        proxy = self.bus.get_object(*self.item)
        return dbus.Interface(proxy, PROPERTIES).GetAll("org.kde.StatusNotifierItem")

    def menu(self):
        """The menu's interface and its items."""
        proxy = self.bus.get_object(self.item[0], self.properties()["Menu"])
        menu = dbus.Interface(proxy, MENU)
        _revision, (_id, _properties, children) = menu.GetLayout(0, -1, [])
        items = []
        # Items of a menu within the menu stand behind its own.
        for number, properties, _children in [i for child in children for i in (child, *child[2])]:
            separator = properties.get("type", "") == "separator"
            label = "" if separator else str(properties.get("label", "")).replace("__", "\0").replace("_", "")
            enabled = bool(properties.get("enabled", True))
            items.append({"id": int(number), "label": label.replace("\0", "_"), "enabled": enabled})
        return menu, items


class Notices(dbus.service.Object):
    """Where notifications go."""

    def __init__(self, bus):
        super().__init__(bus, "/org/freedesktop/Notifications")
        self.all, self.up = [], 0

    @dbus.service.method(NOTIFICATIONS, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, _app, replaces, _icon, summary, body, actions, _hints, _timeout):
        keys = [str(action) for action in actions]
        self.all.append({"summary": str(summary), "body": str(body), "actions": keys[::2]})
        self.up = replaces or len(self.all)
        return self.up

    @dbus.service.method(NOTIFICATIONS, out_signature="as")
    def GetCapabilities(self):
        return ["actions", "body"]

    @dbus.service.method(NOTIFICATIONS, out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "test", "1", "1.2")

    @dbus.service.method(NOTIFICATIONS, in_signature="u")
    def CloseNotification(self, number):
        self.NotificationClosed(number, 3)

    @dbus.service.signal(NOTIFICATIONS, signature="us")
    def ActionInvoked(self, number, key):
        pass

    @dbus.service.signal(NOTIFICATIONS, signature="uu")
    def NotificationClosed(self, number, reason):
        pass


def look(bus):
    """What the tray on the bus says about itself, and the icon that it has, if it has one."""
    said = dbus.Interface(bus.get_object(WATCHER, "/StatusNotifierWatcher"), PROPERTIES).GetAll(WATCHER)
    items = [str(item) for item in said["RegisteredStatusNotifierItems"]]
    # A name on the bus, followed by the object's path; GNOME's extension puts a sign between them.
    name, slash, path = items[0].partition("/") if items else ("", "", "")
    return {"host": bool(said["IsStatusNotifierHostRegistered"]), "items": items, "item": (name.rstrip("@"), slash + path) if items else None}


def popup(watcher):
    """The tray's icon in a bar and its menu below, drawn by GTK as a panel does."""
    _menu, items = watcher.menu()
    properties = watcher.properties()
    name = str(properties["IconName"])
    # libappindicator gives a path without its ending, or a name below its own theme path.
    path = pathlib.Path(properties.get("IconThemePath", "")) / name
    path = path if path.is_file() else path.with_name(path.name + ".png")
    window = Gtk.Window(title="Tray", decorated=False)
    column = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    bar = Gtk.Box(margin=4)
    icon = GdkPixbuf.Pixbuf.new_from_file_at_scale(str(path), 22, 22, True)
    bar.pack_end(Gtk.Image.new_from_pixbuf(icon), False, False, 4)
    drawn = Gtk.MenuBar(pack_direction=Gtk.PackDirection.TTB)
    for item in items:
        entry = Gtk.MenuItem(label=item["label"]) if item["label"] else Gtk.SeparatorMenuItem()
        entry.set_sensitive(item["enabled"])
        drawn.append(entry)
    column.pack_start(bar, False, False, 0)
    column.pack_start(drawn, False, False, 0)
    window.add(column)
    window.set_default_size(330, -1)
    window.set_focus_on_map(False)
    window.show_all()
    return window


def main():
    """Serves until stdin ends."""
    DBusGMainLoop(set_as_default=True)
    bus = dbus.SessionBus()
    looks = "--look" in sys.argv
    offered = () if looks else (NOTIFICATIONS,) if "--no-tray" in sys.argv else (NOTIFICATIONS, WATCHER)
    names = {name: dbus.service.BusName(name, bus) for name in offered}
    open_windows = []
    watcher, notices, loop = Watcher(bus), Notices(bus), GLib.MainLoop()

    def obey(order):
        word, _, rest = order.strip().partition(" ")
        if word == "notifications":
            return notices.all
        if word == "act":
            notices.ActionInvoked(notices.up, rest)
            notices.NotificationClosed(notices.up, 2)
            return True
        if word == "watch":
            names[WATCHER] = dbus.service.BusName(WATCHER, bus)
            return True
        if word == "unwatch":
            names.pop(WATCHER)
            bus.release_name(WATCHER)
            watcher.item = None
            return True
        if word == "host":
            watcher.set_host(rest == "yes")
            return True
        if word == "tray" or looks:
            said = look(bus)
            watcher.item = said.pop("item")
            if word == "tray":
                return said
        if not watcher.item:
            return None
        if word == "activate":
            watcher.activate()
            return True
        if word == "icon":
            return [str(watcher.properties().get(name)) for name in ("IconName", "IconThemePath")]
        if word == "popup":
            open_windows.append(popup(watcher))
            return True
        if word == "popdown":
            open_windows.pop().destroy()
            return True
        menu, items = watcher.menu()
        if word == "menu":
            return items
        for item in items:
            if item["enabled"] and item["label"].startswith(rest):
                menu.Event(item["id"], "clicked", dbus.String("", variant_level=1), dbus.UInt32(int(time.time())))
                return True
        return False

    def readable(_source, condition):
        line = sys.stdin.readline()
        if not line:
            loop.quit()
            return False
        try:
            answer = obey(line)
        except (dbus.DBusException, GLib.Error, OSError, ValueError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
        return True

    GLib.io_add_watch(sys.stdin, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, readable)
    print(json.dumps("ready"), flush=True)
    loop.run()
    del names


main()
